# Shares before gpuload ever ran here.
stretto gpuload --shares --node node1 --state %n.state
