#!/usr/bin/env python3
"""Installs, seeds and serves a real Kiwi TCMS or Nitrate, in throw-away folders, for tests.

    rig.py install  kiwi|nitrate [--apt]
    rig.py database kiwi|nitrate [--apt]
    rig.py serve    kiwi|nitrate FOLDER [--port N] [--apt]

Each does what the ones above it do, unless that lies in the cache already. Needs the standard library alone. Must not
know what is in the database. Exit codes: 75 if the rig can't be installed on this machine, 1 for any other fault.
"""

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = {"kiwi": "12.4", "nitrate": "4.13"}
# What the pinned packages were tried with.
PYTHONS = ((3, 11), (3, 13))
CANNOT_INSTALL = 75
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class CannotInstall(Exception):
    """This machine lacks something, or the packages can't be had; says what to do."""


def say(text):
    """Everything for people goes to standard error: standard output is for the line that says "ready"."""
    print(f"rig: {text}", file=sys.stderr, flush=True)


def cache():
    """Where packages and databases are kept."""
    given = os.environ.get("TALLYONCE_RIGS")
    return pathlib.Path(given) if given else pathlib.Path.home() / ".cache" / "tallyonce-rigs"


def digest(*texts):
    """Twelve hex digits that change with any of the texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def read(*names):
    """The texts of files below this folder."""
    return [(HERE / name).read_text(encoding="utf-8") for name in names]


def python():
    """The interpreter that is on this machine, even if this program runs in a virtual environment."""
    return os.path.realpath(sys.executable)


def install_key(vendor):
    """Names the installed packages: by vendor, version, requirements and interpreter."""
    texts = read("build.txt", f"{vendor}/requirements.txt")
    interpreter = f"{sys.version_info[:2]} {os.uname().machine} {python()}"
    return f"{vendor}-{VERSIONS[vendor]}-{digest(*texts, interpreter)}"


def database_key(vendor):
    """Names the seeded database: by packages, and by all that runs to make it."""
    texts = read("inside.py", f"{vendor}/settings.py", f"{vendor}/seed.py")
    return f"{install_key(vendor)}-{digest(*texts)}"


@contextlib.contextmanager
def alone(key):
    """Holds the lock of this name: only one process at a time makes a thing."""
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / f"{key}.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process makes {key}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(what, command, **options):
    """Runs a command to its end, and ends it if this process dies. All that it says becomes an error if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        check=False,
        **options,
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.strip().splitlines()[-15:])
        raise RuntimeError(f"{what} ended with code {done.returncode}:\n{last}")


def lacking():
    """The Debian packages that are missing, each with the module that shows it."""
    found = {}
    importlib.invalidate_caches()
    for module, package in (("ensurepip", "python3-venv"), ("sqlite3", "libpython3-stdlib")):
        try:
            importlib.import_module(module)
        except ImportError:
            found[package] = module
    return found


def check_machine(apt):
    """Sees that this machine can hold a rig; with `apt`, installs the Debian packages that are missing."""
    version = sys.version_info[:2]
    if not PYTHONS[0] <= version <= PYTHONS[1]:
        low, high = (".".join(map(str, bound)) for bound in PYTHONS)
        raise CannotInstall(
            f"the packages are known to run on Python {low} to {high}, and this is {version[0]}.{version[1]}: "
            "start this program with another python3"
        )
    missing = lacking()
    if missing and apt:
        if os.geteuid() != 0:
            raise CannotInstall("--apt needs root")
        say(f"installs {', '.join(missing)}")
        try:
            run("apt-get update", ["apt-get", "update"])
            run("apt-get install", ["apt-get", "install", "--yes", "--no-install-recommends", *missing])
        except (RuntimeError, OSError) as error:
            raise CannotInstall(error) from error
        missing = lacking()
    if missing:
        lines = [f"Debian package {package} is missing (no module {module})" for package, module in missing.items()]
        raise CannotInstall("; ".join(lines) + f": apt-get install {' '.join(missing)}, or use --apt as root")


def install(vendor, apt=False):
    """The Python of the rig, with the vendor's packages. The marker is written last: without it all is made anew."""
    key = install_key(vendor)
    home = cache() / key
    marker, rig_python = home / "complete", home / "venv" / "bin" / "python"
    with alone(key):
        if marker.exists():
            return rig_python
        check_machine(apt)
        say(f"installs {vendor} {VERSIONS[vendor]} into {home}")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        pip = [rig_python, "-m", "pip", "install", "--no-input", "--quiet", "--no-deps"]
        # Without a network it should say so within a minute or two.
        pip += ["--retries", "2", "--timeout", "20"]
        try:
            run("python3 -m venv", [python(), "-m", "venv", home / "venv"], env=clean)
            run("pip install", [*pip, "-r", HERE / "build.txt"], env=clean)
            # With the pinned build tools, not with whatever is newest.
            pinned = ["--use-pep517", "--no-build-isolation", "-r", HERE / vendor / "requirements.txt"]
            run("pip install", [*pip, *pinned], env=clean)
        except RuntimeError as error:
            raise CannotInstall(error) from error
        write_whole(marker, lambda path: path.write_text(f"{vendor} {VERSIONS[vendor]}\n", encoding="utf-8"))
    return rig_python


def write_whole(path, write):
    """Has a file written beside its place and moved there, so that it is there whole or not at all.

    Nobody else writes it meanwhile: what lies there half made was left by a process that was killed.
    """
    prefix = f".making-{path.name}-"
    for left in path.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=prefix) as folder:
        made = pathlib.Path(folder) / path.name
        write(made)
        os.replace(made, path)


def inside(rig_python, command, vendor, folder):
    """The command that runs a part of a rig: isolated from variables and packages of the user."""
    return [str(part) for part in (rig_python, "-I", "-W", "ignore", HERE / "inside.py", command, vendor, folder)]


def database(vendor, apt=False):
    """The Python of the rig, and a migrated and seeded database, which is only ever copied."""
    rig_python = install(vendor, apt)
    key = database_key(vendor)
    kept = cache() / f"{key}.sqlite3"
    with alone(key):
        if not kept.exists():
            say(f"makes the database of {vendor} {VERSIONS[vendor]}")

            def make(path):
                run("making the database", inside(rig_python, "database", vendor, path.parent))
                (path.parent / "rig.sqlite3").rename(path)

            write_whole(kept, make)
    return rig_python, kept


def serve(vendor, folder, port, adding_ms=0, apt=False):
    """Becomes the server. A folder that holds a database already goes on with it."""
    if adding_ms and vendor != "kiwi":
        raise RuntimeError("--adding-ms: only Kiwi looks first and adds then")
    rig_python, kept = database(vendor, apt)
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    own = folder / "rig.sqlite3"
    if not own.exists():
        write_whole(own, lambda path: shutil.copyfile(kept, path))
    command = [*inside(rig_python, "serve", vendor, folder), str(port), str(adding_ms)]
    os.execv(command[0], command)


def main():
    parser = argparse.ArgumentParser(description="A real Kiwi TCMS or Nitrate for tests.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (
        ("install", "install the packages into the cache"),
        ("database", "make the database in the cache"),
        ("serve", "serve a copy of it until standard input ends"),
    ):
        command = commands.add_parser(name, help=words)
        command.add_argument("vendor", choices=sorted(VERSIONS))
        if name == "serve":
            command.add_argument("folder", help="where database and uploads are; gone on with if it has a database")
            command.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0, the default, is a free one")
            command.add_argument(
                "--adding-ms", type=int, default=0, help="Kiwi: wait so long between looking for a case and adding it"
            )
        command.add_argument("--apt", action="store_true", help="install missing Debian packages (as root)")
    options = vars(parser.parse_args())
    command = {"install": install, "database": database, "serve": serve}[options.pop("command")]
    try:
        command(**options)
    except CannotInstall as error:
        say(f"can't be installed here: {error}")
        sys.exit(CANNOT_INSTALL)
    except (RuntimeError, OSError) as error:
        say(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
