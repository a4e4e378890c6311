"""Drives a Qase stub by the vendor's clients of both APIs: drive_qase.py URL. Prints what they were answered, as JSON."""

import json
import sys

from qase import api_client_v1 as v1, api_client_v2 as v2
from qase.api_client_v1.api.results_api import ResultsApi as Results1
from qase.api_client_v1.api.runs_api import RunsApi
from qase.api_client_v1.models.result_update import ResultUpdate
from qase.api_client_v1.models.run_create import RunCreate
from qase.api_client_v2.api.results_api import ResultsApi as Results2
from qase.api_client_v2.models.create_results_request_v2 import CreateResultsRequestV2
from qase.api_client_v2.models.result_create import ResultCreate
from qase.api_client_v2.models.result_execution import ResultExecution

url = sys.argv[1]
key = {"TokenAuth": "key"}
old = v1.ApiClient(v1.Configuration(host=url + "/v1", api_key=key))
new = v2.ApiClient(v2.Configuration(host=url + "/v2", api_key=key))
runs, read, write = RunsApi(old), Results1(old), Results2(new)

run = runs.create_run("DEMO", RunCreate(title="nightly tlyabc", is_autotest=True, description="by a client")).result.id
found = runs.get_runs("DEMO", search="tlyabc", limit=100).result.entities


def result(name, identity=None, case=None):
    execution = ResultExecution(status="passed", start_time=1790000000.1, end_time=1790000000.4, duration=300)
    return ResultCreate(id=identity, title=name, signature=name, testops_id=case, execution=execution, message="m " + name)


batch = CreateResultsRequestV2(results=[result("a", "id-a"), result("b", "id-b"), result("c", "id-c", 9)])
for _ in range(2):
    write.create_results_v2("DEMO", run, batch)
for _ in range(2):
    write.create_result_v2("DEMO", run, result("d"))
listed = read.get_results("DEMO", run=str(run), limit=100).result
changed = next(entity for entity in listed.entities if entity.case_id == 9)
read.update_result("DEMO", run, changed.hash, ResultUpdate(status="failed", comment="changed"))
read.delete_result("DEMO", run, next(entity for entity in listed.entities if entity.comment == "m b").hash)
try:
    write.create_results_v2("DEMO", run, CreateResultsRequestV2(results=[result("")]))
    refused = None
except v2.exceptions.ApiException as error:
    refused = error.status
runs.complete_run("DEMO", run)
print(json.dumps({
    "run": run,
    "found": [entity.id for entity in found],
    "listed": [listed.filtered, listed.count, len(listed.entities)],
    "comments": sorted(entity.comment for entity in listed.entities),
    "refused": refused,
    "complete": runs.get_run("DEMO", run).result.status_text,
}))
