stretto top nowhere.run
