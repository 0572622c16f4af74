"""`arena serve`: the leaderboard of a run in a browser, live while games are played."""

import contextlib
import socket

import click

from arena.cli.errors import Failure, plain, refusing

__all__ = ["serve"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.argument("run", type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; 0.0.0.0: for every machine.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any that is free.")
@click.option("--poll", type=click.FloatRange(0.05, 3600), default=1.0, show_default=True, metavar="SECONDS",
              help="Between two looks at the store.")  # fmt: skip
@click.option("--open", "browse", is_flag=True, help="Open it in a browser.")
def serve(run: str, host: str, port: int, poll: float, browse: bool) -> None:
    """Show the leaderboard of RUN (a run folder, a store file or a database's URL) in a browser.

    \b
    arena serve runs/demo
    arena serve runs/demo --port 0 --open
    arena serve 'postgresql://host/db?schema=cup' --host 0.0.0.0

    Pages follow the run while it is played, in this process or in others, and any finished game can be seen move by
    move. Nothing is written. Ctrl-C ends it. Needs fastapi and uvicorn (the extra `serve`).
    """
    from arena.tournaments.store import Store

    with refusing():
        Store.open(run).close()
        try:
            from arena.tournaments.site.web import app, web_server
        except ImportError as error:
            need = "a server needs fastapi and uvicorn: pip install 'gymnasium-arena[serve]'"
            raise Failure(f"{need} ({error.name} is missing)") from error
        local = host in _LOOPBACK
        site = app(run, poll=poll, hosts=[*_LOOPBACK, "[::1]"] if local else None)
    listening = _bound(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    click.echo(f"{plain(run)} at {address}   (Ctrl-C ends)")
    if browse:
        click.launch(address)
    with contextlib.suppress(KeyboardInterrupt):
        web_server(site).run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    """Listening there, or a Failure that says why not."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        raise Failure(f"cannot listen at {host}:{port}: {error.strerror or error}; another --port?") from error
    return listening
