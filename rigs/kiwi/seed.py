"""What a client needs in Kiwi TCMS before it can make plans, cases and runs, and how one logs in.

Must not know who starts the server.
"""

import json
import urllib.request

RPC = "/json-rpc/"
WORLD = {
    "user": "rig",
    "password": "rig-password",
    "product": "Shop",
    "version": "1.0",
    "build": "first",
    "plan_type": "Integration",
}


def seed():
    """Fills a migrated database. Statuses, priorities and plan types come with the migrations."""
    from django.contrib.auth.models import User
    from django.contrib.sites.models import Site
    from tcms.management.models import Build, Classification, Product, Version
    from tcms.testcases.models import Category
    from tcms.testplans.models import PlanType

    User.objects.create_superuser(WORLD["user"], "rig@example.com", WORLD["password"])
    Site.objects.update_or_create(pk=1, defaults={"domain": "127.0.0.1", "name": "rig"})
    classification = Classification.objects.create(name="Rig")
    product = Product.objects.create(name=WORLD["product"], classification=classification)
    Category.objects.get_or_create(product=product, name="--default--")
    version = Version.objects.create(product=product, value=WORLD["version"])
    Build.objects.create(version=version, name=WORLD["build"])
    PlanType.objects.get(name=WORLD["plan_type"])


def slow_to_add(seconds):
    """Makes Kiwi wait between its look whether a run has a case and the insertion, as a busy database makes it."""
    import time

    from tcms.testruns.models import TestRun

    create = TestRun.create_execution

    def create_later(self, *arguments, **named):
        time.sleep(seconds)
        return create(self, *arguments, **named)

    TestRun.create_execution = create_later


def login(url):
    """Logs in; an error if the server does not answer, or refuses."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "Auth.login", "params": [WORLD["user"], WORLD["password"]]}
    request = urllib.request.Request(
        url + RPC, data=json.dumps(call).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = json.load(response)
    if not answer.get("result"):
        raise RuntimeError(f"Auth.login: {answer}")
