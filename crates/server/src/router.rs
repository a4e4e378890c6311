//! Every route of the server in one list, in the order of the design's section 6. Must not hold a handler.

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{self, MethodRouter};
use domain::ProblemCode;
use http::{Method, Uri};
use tower_http::catch_panic::CatchPanicLayer;

use crate::problem::Failure;
use crate::state::App;
use crate::{api, auth, layers};

/// Where the API lives.
pub const API: &str = "/api/v1";

type Route = (&'static str, &'static str, MethodRouter<Arc<App>>);

/// Routes below [`API`], which pass `auth` first.
fn api_routes() -> Vec<Route> {
    use routing::{delete, get, post, put};
    vec![
        ("post", "/projects/{project}/pushes", post(api::pushes::record)),
        ("post", "/projects/{project}/staged-pushes", post(api::staged::begin)),
        ("put", "/projects/{project}/pushes/{push}/epochs/{epoch}/chunks/{n}", put(api::staged::put)),
        ("post", "/projects/{project}/pushes/{push}/epochs/{epoch}/commit", post(api::staged::commit)),
        ("delete", "/projects/{project}/pushes/{push}/epochs/{epoch}", delete(api::staged::cancel)),
        ("get", "/projects/{project}/pushes", get(api::attach::attach)),
        ("get", "/projects/{project}/pushes/{push}", get(api::pushes::show)),
        ("get", "/projects/{project}/pushes/{push}/receipt", get(api::pushes::receipt)),
        ("get", "/projects/{project}/pushes/{push}/differences/{n}", get(api::pushes::difference)),
        ("post", "/projects/{project}/pushes/{push}/promote", post(api::pushes::promote)),
        ("get", "/projects", get(api::projects::projects)),
        ("get", "/projects/{project}/cycles", get(api::projects::cycles)),
        ("get", "/projects/{project}/rounds", get(api::rounds::list)),
        ("post", "/projects/{project}/rounds/{round}/close", post(api::rounds::close)),
        ("post", "/projects/{project}/rounds/{round}/pin", post(api::rounds::pin)),
        ("post", "/projects/{project}/rounds/{round}/unpin", post(api::rounds::unpin)),
        ("get", "/projects/{project}/outcomes", get(api::items::outcomes)),
        ("get", "/projects/{project}/items", get(api::items::headline)),
        ("get", "/projects/{project}/items/{hash}/history", get(api::items::history)),
        ("get", "/projects/{project}/unseen", get(api::items::unseen)),
        ("get", "/projects/{project}/pushes/{push}/forwards", get(api::forwards::of_push)),
        ("get", "/projects/{project}/forwards", get(api::forwards::list)),
    ]
}

/// Routes that need no permission.
fn open_routes() -> Vec<Route> {
    use routing::get;
    vec![
        ("get", "/healthz", get(api::health::alive)),
        ("get", "/readyz", get(api::health::ready)),
        ("get", "/metrics", get(api::metrics::metrics)),
        ("get", "/openapi.json", get(api::health::openapi)),
    ]
}

/// Method (lower case) and path of every route, as the `OpenAPI` document names them.
pub fn routes() -> Vec<(&'static str, String)> {
    let below = api_routes().into_iter().map(|(method, path, _)| (method, format!("{API}{path}")));
    below.chain(open_routes().into_iter().map(|(method, path, _)| (method, path.to_owned()))).collect()
}

/// The whole service over `app`.
pub fn router(app: Arc<App>) -> Router {
    let add = |router: Router<Arc<App>>, (_, path, handler): Route| router.route(path, handler);
    let api = api_routes()
        .into_iter()
        .fold(Router::new(), add)
        .layer(middleware::from_fn(auth::authorise))
        // Only here: whoever watches the server's health must be answered under load too, or it is killed for it.
        .layer(middleware::from_fn_with_state(Arc::clone(&app), layers::shed));
    let open = open_routes().into_iter().fold(Router::new(), add);
    open.nest(API, api)
        .fallback(nothing_here)
        .method_not_allowed_fallback(other_method)
        .layer(middleware::from_fn(layers::mark))
        .layer(CatchPanicLayer::custom(layers::crashed))
        .with_state(app)
}

async fn nothing_here(uri: Uri) -> Failure {
    let words = format!("There is nothing at {}. Nothing was recorded. /openapi.json lists what there is.", uri.path());
    Failure::new(ProblemCode::NotFound, words)
}

async fn other_method(method: Method, uri: Uri) -> Failure {
    let words =
        format!("{} does not take {method}. Nothing was recorded. /openapi.json lists what there is.", uri.path());
    Failure::new(ProblemCode::MethodNotAllowed, words)
}
