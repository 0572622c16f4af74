"""On the path of the SGLang environment alone: what SGLang expects of a machine with a GPU, and a CPU has not."""
