mkdir r
stretto resume r
