stretto explain E204
