stretto train
