stretto help terms
