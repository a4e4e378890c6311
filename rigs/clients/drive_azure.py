"""Drives an Azure stub by the vendor's client, in both modes: drive_azure.py URL. Prints what it was answered, as JSON."""

import json
import sys
from datetime import datetime, timedelta, timezone

from azure.devops.connection import Connection
from azure.devops.v7_1.test.models import RunCreateModel, RunUpdateModel, ShallowReference, TestCaseResult
from msrest.authentication import BasicAuthentication

PROJECT = "demo"
test = Connection(base_url=sys.argv[1], creds=BasicAuthentication("", "key")).clients_v7_1.get_test_client()


def outcome(name, verdict):
    return TestCaseResult(
        test_case_title=name, automated_test_name=name, automated_test_storage=name, outcome=verdict, state="Completed",
        duration_in_ms=300, comment="by a client",
    )


run = test.create_test_run(RunCreateModel(name="nightly", automated=True, state="InProgress"), PROJECT)
added = test.add_test_results_to_test_run([outcome("a", "Passed"), outcome("b", "Failed")], PROJECT, run.id)
test.add_test_results_to_test_run([outcome("a", "Passed")], PROJECT, run.id)
test.update_test_results([TestCaseResult(id=added[1].id, outcome="Passed", comment="changed")], PROJECT, run.id)
listed = test.get_test_results(PROJECT, run.id, top=1000)
now = datetime.now(timezone.utc)
day = timedelta(days=1)
found = test.query_test_runs(PROJECT, now - 5 * day, now + day, run_title="nightly", top=100)
test.update_test_run(RunUpdateModel(state="Completed"), PROJECT, run.id)

points = test.get_points(PROJECT, 3, 7)
planned = test.create_test_run(
    RunCreateModel(name="planned", plan=ShallowReference(id="3"), point_ids=[point.id for point in points]), PROJECT
)
born = test.get_test_results(PROJECT, planned.id)
for verdict in ("Failed", "Passed"):
    test.update_test_results([TestCaseResult(id=born[0].id, outcome=verdict, state="Completed")], PROJECT, planned.id)
gone = test.create_test_run(RunCreateModel(name="gone"), PROJECT)
test.delete_test_run(PROJECT, gone.id)
print(json.dumps({
    "run": run.id,
    "added": [one.id for one in added],
    "listed": [[one.id, one.outcome, one.comment] for one in listed],
    "found": [one.id for one in found],
    "state": test.get_test_run_by_id(PROJECT, run.id).state,
    "planned": planned.id,
    "born": [[one.id, one.test_point.id, one.test_case.id, one.outcome] for one in born],
}))
