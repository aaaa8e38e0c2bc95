stretto help trainin
