stretto eval --help
