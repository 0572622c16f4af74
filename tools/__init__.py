"""Tools, tool-call codecs and the tasks that are solved by calling them."""

if __name__ != "arena.tools":  # a flat import would make every class twice
    raise ImportError("import arena.tools, not tools")
