from inmanta.plugins import plugin

KNOWN = {"http": 80, "https": 443}


@plugin
def port_of(protocol: str, *, otherwise: "ports::port?" = None) -> "ports::port":
    return KNOWN.get(protocol, otherwise)
