stretto
