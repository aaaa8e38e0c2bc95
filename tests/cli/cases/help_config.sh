stretto help config
