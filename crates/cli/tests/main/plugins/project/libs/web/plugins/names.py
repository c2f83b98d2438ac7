def encoded(name):
    return name.encode("idna").decode("ascii")
