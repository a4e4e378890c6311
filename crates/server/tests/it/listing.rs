//! Items: pages, filters, sorting, history, and those not seen since.

use serde_json::Value;

use crate::served::{JUNIT, Served, on_every_engine, push, standard};

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["item"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pages_filters_and_orders() {
    on_every_engine(async |served: Served| {
        served.send(push("k", "", JUNIT)).await.is_recorded();
        let get = async |more: &str| served.get(format!("/api/v1/projects/shop/items?cycle=main{more}")).await.json();
        assert_eq!(names(&get("").await), ["adds", "clears", "removes"]);
        assert_eq!(names(&get("&sort=status").await), ["removes", "adds", "clears"]);
        assert_eq!(names(&get("&sort=duration").await), ["adds", "removes", "clears"]);
        assert_eq!(names(&get("&status=failed").await), ["removes"]);
        assert_eq!(names(&get("&search=ADDS").await), ["adds"]);
        assert!(names(&get("&flaky=true").await).is_empty());
        let mut seen = Vec::new();
        let mut more = "&limit=1".to_owned();
        loop {
            let page = get(&more).await;
            assert_eq!(page["total"], 3);
            seen.extend(names(&page).into_iter().map(str::to_owned));
            let Some(next) = page["next"].as_str() else { break };
            more = format!("&limit=1&cursor={next}");
        }
        assert_eq!(seen, ["adds", "clears", "removes"]);
        let outcomes = served.get("/api/v1/projects/shop/outcomes?cycle=main&round=42").await.json();
        assert_eq!(names(&outcomes), ["adds", "clears", "removes"]);
    })
    .await;
}

#[tokio::test]
async fn questions_that_cannot_be_read() {
    let served = standard().await;
    served.send(push("k", "", JUNIT)).await.is_recorded();
    for (more, word) in [
        ("?limit=10", "cycle"),
        ("?cycle=main&limit=0", "limit"),
        ("?cycle=main&limit=1001", "1000"),
        ("?cycle=main&sort=age", "sort"),
        ("?cycle=main&status=flaky", "status"),
        ("?cycle=main&cursor=nonsense", "cursor"),
        ("?cycle=main&round=latest", "round"),
    ] {
        let answer = served.get(format!("/api/v1/projects/shop/items{more}")).await;
        answer.is_problem("parameter-malformed", &[word]);
    }
    let answer = served.get("/api/v1/projects/shop/items/xyz/history").await;
    answer.is_problem("parameter-malformed", &["hash"]);
    served.get("/api/v1/projects?all=true").await.is_problem("parameter-malformed", &["all"]);
}

#[tokio::test]
async fn an_item_through_time() {
    on_every_engine(async |served: Served| {
        served.send(push("k1", "", JUNIT)).await.is_recorded();
        let mut next =
            push("k2", "", "<testsuite name=\"shop\"><testcase classname=\"cart\" name=\"adds\"/></testsuite>");
        next.path = next.path.replace("run=42", "run=43");
        served.send(next).await.is_recorded();
        let page = served.get("/api/v1/projects/shop/items?cycle=main").await.json();
        assert_eq!(names(&page), ["adds"]);
        let hash = page["items"][0]["hash"].as_str().unwrap();
        let history = served.get(format!("/api/v1/projects/shop/items/{hash}/history?cycle=main")).await.json();
        let rounds: Vec<&str> = history.as_array().unwrap().iter().map(|e| e["round"].as_str().unwrap()).collect();
        assert_eq!(rounds, ["run:42", "run:43"]);
        let unseen = served.get("/api/v1/projects/shop/unseen?cycle=main").await.json();
        let unseen: Vec<&str> =
            unseen.as_array().unwrap().iter().map(|item| item["item"]["name"].as_str().unwrap()).collect();
        assert_eq!(unseen, ["clears", "removes"]);
    })
    .await;
}

#[tokio::test]
async fn cycles_by_name() {
    on_every_engine(async |served: Served| {
        for (key, cycle) in [("k1", "main"), ("k2", "dev")] {
            let mut request = push(key, "", JUNIT);
            request.path = request.path.replace("cycle=main", &format!("cycle={cycle}"));
            served.send(request).await.is_recorded();
        }
        let cycles = served.get("/api/v1/projects/shop/cycles").await;
        assert_eq!(cycles.status, 200, "{}", cycles.text());
        let cycles = cycles.json();
        assert_eq!((&cycles[0]["cycle"], &cycles[1]["cycle"]), (&"dev".into(), &"main".into()));
        assert_eq!(cycles[0]["rounds"], 1);
    })
    .await;
}
