stretto resume nothing.run
