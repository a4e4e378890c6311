"""Drives a ReportPortal stub by the vendor's client: drive_reportportal.py URL. Prints what it was answered, as JSON."""

import json
import sys

from reportportal_client import RPClient

ITEM = "11111111-1111-4111-8111-111111111111"

client = RPClient(endpoint=sys.argv[1], project="demo", api_key="key", retries=0)
launch = client.start_launch("nightly", "1790000000000", attributes=[{"key": "tallyonce", "value": "tlyabc"}])
suite = client.start_test_item("suite", "1790000000000", "suite")
step = dict(parent_item_id=suite, test_case_id="pkg::adds", uuid=ITEM)
first = client.start_test_item("adds", "1790000000001", "step", **step)
again = client.start_test_item("adds", "1790000000001", "step", **step)
client.finish_test_item(ITEM, "1790000000300", "FAILED")
other = client.start_test_item("pays", "1790000000002", "step", parent_item_id=suite, test_case_id="pkg::pays")
client.finish_test_item(other, "1790000000400", "SKIPPED")
client.finish_test_item(suite, "1790000000500", "FAILED")
info = client.get_launch_info()
number = client.get_item_id_by_uuid(ITEM)
client.finish_launch("1790000000600")
print(json.dumps({
    "launch": launch,
    "info": [info.get("uuid"), info.get("name")],
    "same": first == again == ITEM,
    "number": number,
}))
