"""Servers for tests. The fake SGLang is `tests.fakes.server.FakeSGLang`; its contract is SGLang's own."""
