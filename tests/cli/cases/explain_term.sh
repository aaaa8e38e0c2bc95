stretto explain mase
