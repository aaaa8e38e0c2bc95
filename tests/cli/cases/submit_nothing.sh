stretto submit --ranks 2
