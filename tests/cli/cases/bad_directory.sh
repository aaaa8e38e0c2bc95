mkdir d
stretto check d
