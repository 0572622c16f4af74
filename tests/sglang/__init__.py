"""The real SGLang on two CPU cores: the recipe, the servers tests start, and the tests that need them."""
