"""Settings of Nitrate for a rig: SQLite in the rig's folder, no mail, quick passwords.

Must not know what is in the database.
"""

import os

# The package reads this one while its own settings are still being imported. Before all else.
ASYNC_TASK = "DISABLED"

from tcms.settings.common import *  # noqa: E402,F403

FOLDER = os.environ["RIG_FOLDER"]

ASYNC_TASK = "DISABLED"
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
MEDIA_ROOT = FILE_UPLOAD_DIR = os.path.join(FOLDER, "uploads")
# Its listeners write mails, from templates that are not in the package.
LISTENING_MODEL_SIGNAL = False
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# It can't log the call of somebody who is not logged in yet, and says so at length at each login.
LOGGING["loggers"]["nitrate.xmlrpc"]["level"] = "CRITICAL"  # noqa: F405
# What went wrong inside is said on standard error, not mailed.
LOGGING["loggers"]["django.request"]["handlers"] = ["console"]  # noqa: F405
