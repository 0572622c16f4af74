"""The `arena` command, a module a subcommand."""
