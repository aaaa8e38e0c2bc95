stretto help exit-codes
