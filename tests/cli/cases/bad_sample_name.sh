stretto sample airlines
