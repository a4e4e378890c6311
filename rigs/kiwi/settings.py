"""Settings of Kiwi TCMS for a rig: SQLite in the rig's folder, no mail, quick passwords.

Must not know what is in the database.
"""

import inspect
import os

# modernrpc 0.12 imports this name, which Python 3.11 took away, and never calls it on Python 3. Before all else.
inspect.getargspec = lambda function: tuple(inspect.getfullargspec(function)[:4])

from tcms.settings.common import *  # noqa: E402,F403

FOLDER = os.environ["RIG_FOLDER"]

DEBUG = False
SECRET_KEY = "a rig keeps no secrets"
ALLOWED_HOSTS = ["*"]
# Writers wait for one another, as on a server for many, instead of failing after five seconds.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.path.join(FOLDER, "rig.sqlite3"),
        "OPTIONS": {"timeout": 60},
    }
}
MEDIA_ROOT = os.path.join(FOLDER, "uploads")
STATIC_ROOT = os.path.join(FOLDER, "static")
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# What went wrong inside is said on standard error, not mailed.
LOGGING["loggers"]["django.request"]["handlers"] = ["console"]  # noqa: F405
