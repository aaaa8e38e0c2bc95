# No driver, or none where STRETTO_NVML says.
STRETTO_NVML=libabsent-ml.so.1 stretto gpuload --dry-run
