stretto explain E999
