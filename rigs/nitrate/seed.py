"""What a client needs in Nitrate before it can make plans, cases and runs, and how one logs in.

Must not know who starts the server.
"""

import xmlrpc.client

RPC = "/xmlrpc/"
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
    from tcms.management.models import Classification, Product, TestBuild, Version
    from tcms.testcases.models import TestCaseCategory
    from tcms.testplans.models import TestPlanType

    User.objects.create_superuser(WORLD["user"], "rig@example.com", WORLD["password"])
    Site.objects.update_or_create(pk=1, defaults={"domain": "127.0.0.1", "name": "rig"})
    classification = Classification.objects.create(name="Rig")
    product = Product.objects.create(name=WORLD["product"], classification=classification)
    TestCaseCategory.objects.get_or_create(product=product, name="--default--")
    Version.objects.create(product=product, value=WORLD["version"])
    TestBuild.objects.create(product=product, name=WORLD["build"])
    TestPlanType.objects.get(name=WORLD["plan_type"])


def login(url):
    """Logs in; an error if the server does not answer, or refuses."""
    who = {"username": WORLD["user"], "password": WORLD["password"]}
    if not xmlrpc.client.ServerProxy(url + RPC).Auth.login(who):
        raise RuntimeError("Auth.login: no session")
