stretto help environment
