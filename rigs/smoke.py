#!/usr/bin/env python3
"""Measures what a repeated write really does on Kiwi TCMS and on Nitrate, and compares it with what adapters rely on.

    smoke.py [kiwi] [nitrate]

Prints one row a claim. Exit codes: 0 if all is as claimed, 1 if not, 75 if a rig can't be installed here.
"""

import collections
import concurrent.futures
import http.client
import itertools
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import xmlrpc.client

RIG = pathlib.Path(__file__).resolve().parent / "rig.py"

Answer = collections.namedtuple("Answer", "status result fault")


class Table:
    """The claims, as measured."""

    def __init__(self, vendor):
        self.vendor, self.differences = vendor, 0

    def row(self, what, claimed, measured):
        """One claim; equal words mean that it holds."""
        same = str(claimed) == str(measured)
        self.differences += not same
        print(f"{self.vendor:8}| {'ok  ' if same else 'NOT '}| {what:62}| {claimed!s:34}| {measured}", flush=True)


def serving(vendor, folder):
    """Starts the rig and waits for its line; ends this program with the rig's exit code if none comes."""
    start = time.monotonic()
    command = [sys.executable, str(RIG), "serve", vendor, folder]
    log = open(pathlib.Path(folder) / "log", "w+", encoding="utf-8")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    line = process.stdout.readline()
    if not line:
        log.seek(0)
        sys.stderr.write(log.read())
        sys.exit(process.wait())
    print(f"{vendor}: ready after {time.monotonic() - start:.1f} s", flush=True)
    return process, json.loads(line)


class Client:
    """Posts with a session's cookie; each thread has a connection of its own."""

    def __init__(self, rig):
        self.rig, self.cookie, self.local, self.numbers = rig, None, threading.local(), itertools.count(1)
        parts = urllib.parse.urlsplit(rig["rpc"])
        self.address, self.path = parts.netloc, parts.path

    def post(self, body, kind):
        """The status and the body of the answer."""
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = http.client.HTTPConnection(self.address, timeout=120)
        headers = {"Content-Type": kind, **({"Cookie": self.cookie} if self.cookie else {})}
        connection.request("POST", self.path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            if cookie.startswith("sessionid="):
                self.cookie = cookie.split(";")[0]
        return answer.status, text

    def must(self, method, *params):
        """The result of a call that has to succeed."""
        answer = self.call(method, *params)
        if answer.fault is not None:
            raise RuntimeError(f"{method}{params}: {answer}")
        return answer.result

    def at_once(self, count, method, *params):
        """The answers to the same call, made by so many threads at the same time."""
        barrier = threading.Barrier(count)

        def one(_):
            barrier.wait()
            return self.call(method, *params)

        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return list(pool.map(one, range(count)))


class Json(Client):
    """Kiwi's JSON-RPC."""

    def envelope(self, method, params):
        return {"jsonrpc": "2.0", "id": next(self.numbers), "method": method, "params": list(params)}

    def send(self, content):
        status, text = self.post(json.dumps(content), "application/json")
        return status, json.loads(text) if text.strip() else None

    def call(self, method, *params):
        status, answer = self.send(self.envelope(method, params))
        fault = answer.get("error")
        return Answer(status, answer.get("result"), fault)


class Xml(Client):
    """Nitrate's XML-RPC."""

    def call(self, method, *params):
        status, text = self.post(xmlrpc.client.dumps(params, method, allow_none=True), "text/xml")
        if status != 200:
            return Answer(status, None, "no XML")
        try:
            return Answer(status, xmlrpc.client.loads(text)[0][0], None)
        except xmlrpc.client.Fault as fault:
            return Answer(status, None, f"fault {fault.faultCode}")


def counted(answers):
    """So many made, so many refused and how."""
    good = sum(answer.fault is None for answer in answers)
    refused = collections.Counter(f"HTTP {answer.status}" for answer in answers if answer.fault is not None)
    return ", ".join([f"{good} made"] + [f"{count} x {how}" for how, count in sorted(refused.items())])


def kiwi_world(call, rig):
    """A plan, a confirmed case and what they need."""
    product = call("Product.filter", {"name": rig["product"]})[0]["id"]
    version = call("Version.filter", {"product": product, "value": rig["version"]})[0]["id"]
    build = call("Build.filter", {"version": version, "name": rig["build"]})[0]["id"]
    kind = call("PlanType.filter", {"name": rig["plan_type"]})[0]["id"]
    category = call("Category.filter", {"product": product})[0]["id"]
    priority = call("Priority.filter", {})[0]["id"]
    confirmed = call("TestCaseStatus.filter", {"is_confirmed": True})[0]["id"]
    plan = {"name": "Nightly", "text": "", "type": kind, "product": product, "product_version": version}
    plan = call("TestPlan.create", {**plan, "is_active": True})["id"]
    case = {"category": category, "product": product, "priority": priority, "case_status": confirmed}
    user = call("User.filter", {"username": rig["user"]})[0]["id"]
    run = {"summary": "round 1", "manager": user, "plan": plan, "build": build}
    return version, plan, case, run


def kiwi_containers(client, table, world):
    """Builds, cases and runs: what a second creation does."""
    call, (version, plan, case, run) = client.must, world
    build = {"name": "b-1", "version": version}
    call("Build.create", build)
    again = client.call("Build.create", build)
    table.row(
        "Build.create twice: the second", "HTTP 200 -32603", f"HTTP {again.status} {(again.fault or {}).get('code')}"
    )
    answers = client.at_once(6, "Build.create", {"name": "b-2", "version": version})
    table.row("Build.create, 6 at once", "1 made, 5 x HTTP 200", counted(answers))
    rows = call("Build.filter", {"name": "b-2"})
    table.row("  builds of that name then", 1, len(rows))
    cases = [call("TestCase.create", {**case, "summary": "pkg.adds"})["id"] for _ in range(2)]
    table.row("TestCase.create twice: rows", 2, len(call("TestCase.filter", {"summary": "pkg.adds"})))
    cases += [call("TestCase.create", {**case, "summary": f"pkg.case{number}"})["id"] for number in range(3)]
    for _ in range(2):
        call("TestPlan.add_case", plan, cases[0])
    table.row("TestPlan.add_case twice: cases in the plan", 1, len(call("TestCase.filter", {"plan": plan})))
    runs = [call("TestRun.create", run)["id"] for _ in range(2)]
    table.row("TestRun.create twice: rows", 2, len(call("TestRun.filter", {"plan": plan, "summary": "round 1"})))
    for _ in range(2):
        tags = call("TestRun.add_tag", runs[0], "key-1")
    table.row("TestRun.add_tag twice: tags", 1, len(tags))
    found = [row["id"] for row in call("TestRun.filter", {"tag__name": "key-1"})]
    table.row("TestRun.filter by tag__name finds that run alone", [runs[0]], found)
    return runs[0], cases


def kiwi_items(client, table, run, cases):
    """Executions: one row or many."""
    call = client.must
    ids = [[row["id"] for row in call("TestRun.add_case", run, cases[0])] for _ in range(2)]
    table.row("TestRun.add_case twice, in sequence: same row", True, ids[0] == ids[1])
    made, rows = set(), []
    for case in cases[1:]:
        made.add(counted(client.at_once(12, "TestRun.add_case", run, case)))
        rows.append(len(call("TestExecution.filter", {"run": run, "case": case})))
    table.row(f"TestRun.add_case, 12 at once, {len(rows)} times", {"12 made"}, made)
    table.row(f"  more than one row at least once (rows: {rows})", True, max(rows) > 1)
    return ids[0][0]


def kiwi_outcomes(client, table, run, item):
    """Status, history, comments: what a repeat replaces and what it appends."""
    call = client.must
    status = {row["name"]: row["id"] for row in call("TestExecutionStatus.filter", {})}
    names = "IDLE RUNNING PAUSED PASSED FAILED BLOCKED ERROR WAIVED".split()
    table.row("statuses 1 to 8 are IDLE ... WAIVED", True, [status.get(name) for name in names] == list(range(1, 9)))
    counts = []
    for name in ("PASSED", "FAILED", "FAILED"):
        call("TestExecution.update", item, {"status": status[name]})
        counts.append(len(call("TestExecution.history", item)))
    now = [row["status__name"] for row in call("TestExecution.filter", {"run": run, "id": item})]
    table.row("TestExecution.update three times: rows and last status", ["FAILED"], now)
    table.row("  history records added by the second and third", [1, 1], [counts[1] - counts[0], counts[2] - counts[1]])
    for _ in range(2):
        call("TestExecution.add_comment", item, "same words")
    table.row("TestExecution.add_comment twice: comments", 2, len(call("TestExecution.get_comments", item)))


def kiwi_markers(client, table, run, item):
    """Links as marks of a key."""
    call = client.must
    mark = {"execution_id": item, "name": "tallyonce", "url": "https://tallyonce.example/w/k1", "is_defect": False}
    links = {"execution__run": run, "name": "tallyonce"}
    found = {"run": run, "linkreference__url": mark["url"]}
    table.row(
        "TestExecution.filter by linkreference__url, no link yet: rows", 0, len(call("TestExecution.filter", found))
    )
    first = call("TestExecution.add_link", mark)
    table.row("  with one link: that row", [item], [row["id"] for row in call("TestExecution.filter", found)])
    call("TestExecution.add_link", mark)
    table.row("TestExecution.add_link twice: links", 2, len(call("TestExecution.get_links", links)))
    table.row("  rows found by the link then", 1, len(call("TestExecution.filter", found)))
    answers = client.at_once(6, "TestExecution.add_link", {**mark, "url": "https://tallyonce.example/w/k2"})
    table.row("TestExecution.add_link, 6 at once", "6 made", counted(answers))
    table.row("TestExecution.get_links of the whole run by name", 8, len(call("TestExecution.get_links", links)))
    call("TestExecution.remove_link", {"pk": first["id"]})
    table.row("TestExecution.remove_link: links then", 7, len(call("TestExecution.get_links", links)))
    for what, change in (("name of 65", {"name": "n" * 65}), ("url of 201", {"url": "https://t.example/" + "u" * 183})):
        answer = client.call("TestExecution.add_link", {**mark, **change})
        code = answer.fault["code"] if answer.fault else "taken"
        table.row(f"TestExecution.add_link with a {what} characters", "HTTP 200 -32603", f"HTTP {answer.status} {code}")


def kiwi_wire(client, table, item):
    """Errors, batches, and the id that gets no answer."""
    wrong = client.call("Nothing.here")
    table.row("unknown method", "HTTP 200 -32601", f"HTTP {wrong.status} {wrong.fault['code']}")
    zero = {**client.envelope("TestExecution.filter", [{"id": item}]), "id": 0}
    status, answer = client.send(zero)
    table.row("a call with id 0, alone: the id of the answer", "HTTP 200 0", f"HTTP {status} {answer and answer['id']}")
    status, answers = client.send([zero, client.envelope("TestExecution.filter", [{"id": item}])])
    table.row(
        "a call with id 0 and one with another in a batch: answers", "HTTP 200 1", f"HTTP {status} {len(answers)}"
    )
    batch = [
        client.envelope("TestExecution.update", [item, {"status": 4}]),
        client.envelope("TestExecution.update", [10**6, {"status": 4}]),
        client.envelope("TestExecution.add_comment", [item, "third of a batch"]),
    ]
    status, answers = client.send(batch)
    kinds = ["error" if "error" in answer else "result" for answer in answers]
    table.row("a batch whose second call fails", "HTTP 200 result, error, result", f"HTTP {status} {', '.join(kinds)}")
    texts = [row["comment"] for row in client.must("TestExecution.get_comments", item)]
    table.row("  what came after the failure stays", True, "third of a batch" in texts)
    stranger = Json(client.rig).call("TestExecution.update", item, {"status": 4})
    table.row("an update without a session: status", "HTTP 403", f"HTTP {stranger.status}")


def kiwi(rig, table):
    client = Json(rig)
    client.must("Auth.login", rig["user"], rig["password"])
    run, cases = kiwi_containers(client, table, kiwi_world(client.must, rig))
    item = kiwi_items(client, table, run, cases)
    kiwi_outcomes(client, table, run, item)
    kiwi_markers(client, table, run, item)
    kiwi_wire(client, table, item)
    start = time.monotonic()
    for turn in range(100):
        client.must("TestExecution.update", item, {"status": 4 + turn % 2})
    print(f"kiwi: 100 updates in {time.monotonic() - start:.1f} s")


def nitrate_world(call, rig):
    """A run without cases, a function that makes cases, and a build."""
    product = call("Product.filter", {"name": rig["product"]})[0]["id"]
    version = call("Product.filter_versions", {"product": product, "value": rig["version"]})[0]["id"]
    build = call("Build.check_build", rig["build"], product)["build_id"]
    kind = call("TestPlan.check_plan_type", rig["plan_type"])["id"]
    plan = {"product": product, "name": "Nightly", "type": kind, "product_version": version, "text": "-"}
    plan = call("TestPlan.create", {**plan, "is_active": True})["plan_id"]
    category = call("Product.get_categories", product)[0]["id"]
    case = {"product": product, "category": category, "priority": 1, "case_status": 2, "plan": plan}
    me = call("User.get_me")["id"]
    run = {"plan": plan, "build": build, "manager": me, "summary": "round 1"}
    run = {**run, "product": product, "product_version": version}
    return run, lambda name: call("TestCase.create", {**case, "summary": name})["case_id"]


def nitrate_containers(client, table, run):
    """Runs: what a second creation does."""
    runs = [client.must("TestRun.create", run)["run_id"] for _ in range(2)]
    table.row("TestRun.create twice: rows", 2, len(client.must("TestRun.filter", {"summary": run["summary"]})))
    return runs[0]


def nitrate_items(client, table, run, build, new_case):
    """Rows of case and run: what guards them."""
    call = client.must
    first, second, third = (new_case(name) for name in ("pkg.adds", "pkg.removes", "pkg.moves"))
    row = {"run": run, "case": first, "build": build, "case_run_status": 1, "notes": "https://tallyonce.example/w/k1"}
    item = call("TestCaseRun.create", row)["case_run_id"]
    again = client.call("TestCaseRun.create", row)
    table.row("TestCaseRun.create twice: the second", "HTTP 500 no XML", f"HTTP {again.status} {again.fault}")
    answers = client.at_once(10, "TestCaseRun.create", {**row, "case": second, "notes": ""})
    table.row("TestCaseRun.create, 10 at once", "1 made, 9 x HTTP 500", counted(answers))
    table.row("  rows then", 1, len(call("TestCaseRun.filter", {"run": run, "case": second})))
    mixed = client.call("TestRun.add_cases", [run], [first, third])
    table.row("TestRun.add_cases with one that exists", "HTTP 500 no XML", f"HTTP {mixed.status} {mixed.fault}")
    rows = len(call("TestCaseRun.filter", {"run": run, "case": third}))
    table.row("  rows of the one that did not exist", 0, rows)
    return item


def nitrate_outcomes(client, table, run, build, item):
    """Status, notes and comments; errors."""
    call = client.must
    for status in (4, 5, 5):
        call("TestCaseRun.update", [item], {"case_run_status": status})
    rows = call("TestCaseRun.filter", {"case_run_id": item})
    table.row("TestCaseRun.update three times: rows and last status", [5], [row["case_run_status_id"] for row in rows])
    status = rows[0]["case_run_status"]
    table.row("  the status by its name comes as base64", True, getattr(status, "data", None) == b"FAILED")
    found = [row["case_run_id"] for row in call("TestCaseRun.filter", {"run": run, "notes__contains": "/w/k1"})]
    table.row("TestCaseRun.filter by notes__contains finds that row alone", [item], found)
    call("TestCaseRun.update", [item], {"notes": "other"})
    rows = len(call("TestCaseRun.filter", {"run": run, "notes__contains": "/w/k1"}))
    table.row("TestCaseRun.update of notes replaces them: rows with the old", 0, rows)
    for words in ("same words", "same words", "other words"):
        call("TestCaseRun.add_comment", [item], words)
    with sqlite3.connect(client.rig["database"]) as database:
        comments = [words for (words,) in database.execute("select comment from django_comments order by id")]
    table.row(
        "TestCaseRun.add_comment: same words once a day, others appended", ["same words", "other words"], comments
    )
    for _ in range(2):
        call("TestCaseRun.attach_log", item, "tallyonce", "https://tallyonce.example/w/k1")
    table.row("TestCaseRun.attach_log twice: logs", 2, len(call("TestCaseRun.get_logs", item)))
    table.row("TestRun.get of a missing run", {}, client.call("TestRun.get", 10**6).result)
    missing = client.call("TestCaseRun.create", {"run": run, "case": 10**6, "build": build})
    table.row("TestCaseRun.create of a missing case", "HTTP 500 no XML", f"HTTP {missing.status} {missing.fault}")
    stranger = Xml(client.rig).call("TestCaseRun.update", [item], {"case_run_status": 4})
    table.row("an update without a session: status", "HTTP 500 no XML", f"HTTP {stranger.status} {stranger.fault}")
    rows = len(call("TestRun.get_test_case_runs", run))
    table.row("TestRun.get_test_case_runs: rows", 2, rows)


def nitrate(rig, table):
    client = Xml(rig)
    client.must("Auth.login", {"username": rig["user"], "password": rig["password"]})
    run, new_case = nitrate_world(client.must, rig)
    build = run["build"]
    run = nitrate_containers(client, table, run)
    item = nitrate_items(client, table, run, build, new_case)
    nitrate_outcomes(client, table, run, build, item)
    start = time.monotonic()
    for turn in range(100):
        client.must("TestCaseRun.update", [item], {"case_run_status": 4 + turn % 2})
    print(f"nitrate: 100 updates in {time.monotonic() - start:.1f} s")


def main():
    differences = 0
    for vendor in sys.argv[1:] or ["kiwi", "nitrate"]:
        table = Table(vendor)
        with tempfile.TemporaryDirectory() as folder:
            process, rig = serving(vendor, folder)
            try:
                {"kiwi": kiwi, "nitrate": nitrate}[vendor](rig, table)
            finally:
                process.stdin.close()
                process.wait()
        differences += table.differences
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
