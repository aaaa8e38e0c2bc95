stretto explain W034
