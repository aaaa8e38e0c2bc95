# The driver cuda is tested on OpenCL where no NVIDIA GPU is: cuda_on_opencl.c stands in for libcuda, fake_nvrtc.c for NVRTC.
find_path(OPENCL_HEADERS CL/cl.h)
if(OPENCL_HEADERS)
  add_library(cuda_on_opencl MODULE cuda_on_opencl.c)
  target_include_directories(cuda_on_opencl PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_include_directories(cuda_on_opencl SYSTEM PRIVATE ${OPENCL_HEADERS})
  target_link_libraries(cuda_on_opencl PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  add_library(fake_nvrtc MODULE fake_nvrtc.c)
  target_include_directories(fake_nvrtc PRIVATE ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(cuda_on_opencl fake_nvrtc PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  stretto_test(gpu t_cuda USES gpu kern base TIMEOUT 300) # compiles the kernels
  target_compile_definitions(t_cuda PRIVATE CUDA_ON_OPENCL="$<TARGET_FILE:cuda_on_opencl>"
                                            FAKE_NVRTC="$<TARGET_FILE:fake_nvrtc>")
  add_dependencies(t_cuda cuda_on_opencl fake_nvrtc)
  if(TARGET t_gpu_kern) # all kernels through the driver cuda alone
    add_dependencies(t_gpu_kern cuda_on_opencl fake_nvrtc)
    add_test(NAME t_gpu_kern_cuda COMMAND t_gpu_kern)
    set_tests_properties(
      t_gpu_kern_cuda
      PROPERTIES LABELS unit TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT
                 "STRETTO_OPENCL=none;STRETTO_CUDA=$<TARGET_FILE:cuda_on_opencl>;STRETTO_NVRTC=$<TARGET_FILE:fake_nvrtc>")
  endif()
else()
  message(STATUS "OpenCL headers not found: the CUDA driver is not tested (Debian: opencl-headers, pocl-opencl-icd)")
endif()
