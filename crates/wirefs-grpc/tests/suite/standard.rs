//! The standard services: health and reflection; deadlines.

use crate::gate::{Gate, path};
use std::time::Duration;
use tokio_stream::StreamExt;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

#[test]
fn the_service_is_healthy_and_lists_itself() {
    let gate = Gate::start(&[]);
    gate.runtime.block_on(async {
        let service = "wirefs.v1.FileSystem".to_owned();
        let check = HealthCheckRequest { service: service.clone() };
        let health = HealthClient::new(gate.channel.clone()).check(check).await.unwrap().into_inner();
        assert_eq!(health.status, ServingStatus::Serving as i32);
        let list = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut client = ServerReflectionClient::new(gate.channel.clone());
        let mut replies =
            client.server_reflection_info(tokio_stream::iter([list])).await.unwrap().into_inner();
        let reply = replies.next().await.unwrap().unwrap().message_response.unwrap();
        let MessageResponse::ListServicesResponse(listed) = reply else { panic!("{reply:?}") };
        assert!(listed.service.iter().any(|listed| listed.name == service), "{listed:?}");
    });
}

#[test]
fn a_request_whose_deadline_is_over_fails_with_that() {
    let gate = Gate::start(&[]);
    let mut client = gate.client();
    // A gate that runs may answer before any deadline.
    gate.freeze();
    gate.runtime.block_on(async {
        let mut request = Request::new(path(""));
        request.set_timeout(Duration::from_millis(20));
        let late = client.lookup(request).await.unwrap_err();
        assert!([Code::DeadlineExceeded, Code::Cancelled].contains(&late.code()), "{late:?}");
        gate.thaw();
        client.lookup(path("")).await.unwrap();
    });
}
