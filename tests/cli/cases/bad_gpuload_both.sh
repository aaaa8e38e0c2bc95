# Shares come from the state, a record goes into it.
stretto gpuload --shares --recorded "$DATA/gpu-day.csv" && exit
stretto gpuload --recorded "$DATA/gpu-day.csv" --state /proc/absent/%n.state --node node1
