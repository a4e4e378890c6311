"""The part of a rig that runs in the rig's own Python: makes the database, or serves it. Started by rig.py.

    inside.py database VENDOR FOLDER
    inside.py serve    VENDOR FOLDER PORT ADDING_MS

Must not know how the packages got there.
"""

import json
import os
import sys
import threading

# The settings and seeds lie in the repository, which stays as it is.
sys.dont_write_bytecode = True

import django  # noqa: E402


def prepare(vendor, folder):
    """Makes the vendor's settings and seed importable, and Django ready."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), vendor))
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    os.environ["RIG_FOLDER"] = folder
    django.setup()
    from django.db.backends.signals import connection_created

    connection_created.connect(without_fsync, weak=False)


def without_fsync(connection, **_):
    """A rig need not live through a crash of the machine, only through one of its process."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous=OFF")


def database():
    """Migrates an empty database and fills it."""
    import django.dispatch.dispatcher as dispatcher
    from django.core.management import call_command

    # Each historical model that a migration makes connects to the same signals, and each time Django looks through all
    # earlier receivers for the same one: nineteen twentieths of Kiwi's migration. There is none, so it need not look.
    dispatcher.any = lambda _: False
    call_command("migrate", verbosity=0, interactive=False)
    import seed

    seed.seed()


def serve(folder, port, adding_ms):
    """Serves until standard input ends; says so in one line of JSON as soon as a login has been answered."""
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    import seed

    class Server(ThreadedWSGIServer):
        """Django's development server, with room for many that come at once."""

        request_queue_size = 128

    class Handler(WSGIRequestHandler):
        """Sends the body right after the head, and not 40 ms later, when the client has acknowledged the head."""

        disable_nagle_algorithm = True

    if adding_ms:
        seed.slow_to_add(adding_ms / 1000)
    server = Server(("127.0.0.1", port), Handler)
    server.set_app(get_wsgi_application())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    seed.login(url)
    ready = {"url": url, "rpc": url + seed.RPC, **seed.WORLD, "pid": os.getpid()}
    print(json.dumps({**ready, "database": os.path.join(folder, "rig.sqlite3")}), flush=True)
    try:
        while os.read(0, 4096):
            pass
    except KeyboardInterrupt:
        pass
    # At once: requests under way end as they would with the machine.
    os._exit(0)


def main():
    command, vendor, folder, *numbers = sys.argv[1:]
    prepare(vendor, folder)
    if command == "database":
        database()
    else:
        serve(folder, *map(int, numbers))


if __name__ == "__main__":
    main()
