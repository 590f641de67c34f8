//! `wirefs-grpc`: serves a directory, or any source that wirefs mounts, to clients of gRPC.
//!
//! *Holds*: the service in `proto/wirefs.proto`, with reflection and health; an error is a status code, with Linux's
//! number in its metadata; a stored file replaces another at its end or not at all; a network address that others
//! reach is served only on demand.
//!
//! *Never*: decisions about files, caching or order; an async runtime in any other program of this project.
//!
//! *Proved by*: `tests/suite`, where a generated client speaks with the program.

mod bridge;
mod convert;
mod failure;
mod listing;
mod lock;
mod node;
mod open_file;
mod secured;
mod service;
mod store;

/// The generated messages and service.
#[expect(unreachable_pub, reason = "the generated items are public")]
mod proto {
    tonic::include_proto!("wirefs.v1");
}

use anyhow::{Context, Result, bail};
use clap::Parser;
use node::Tree;
use proto::file_system_server::FileSystemServer;
use secured::TlsOptions;
use service::{DATA_BYTES_MAX, HEAD_BYTES_MAX, Service};
use std::ffi::OsStr;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Server, ServerTlsConfig};
use wirefs_client::call::Caller;
use wirefs_gate::{OpenSource, Signals, SourceOptions, config_dir};

/// The descriptor of the service, for reflection.
const DESCRIPTOR: &[u8] = tonic::include_file_descriptor_set!("descriptor");
/// A connection is pinged after this long without a frame, and ends after as long without an answer.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// The requests of one connection at a time, at most.
const REQUESTS_MAX: u32 = 256;

const EXAMPLES: &str = "Examples:
  wirefs-grpc ~/project --grpc 127.0.0.1:6441
  wirefs-grpc host:project --grpc 127.0.0.1:6441
  wirefs-grpc ~/project --grpc 0.0.0.0:6441 --tls-cert cert.pem --tls-key key.pem --client-ca ca.pem
  wirefs mount grpc://127.0.0.1:6441/ mnt
  grpcurl -plaintext 127.0.0.1:6441 list";

/// Serves a directory, or any source that wirefs mounts, to clients of gRPC
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    source: SourceOptions,
    /// Serve gRPC here
    #[arg(long, value_name = "IP:PORT", required_unless_present = "stdio")]
    grpc: Option<SocketAddr>,
    /// Serve an address that other machines reach, without authentication of clients
    #[arg(long)]
    unprotected: bool,
    #[command(flatten)]
    tls: TlsOptions,
    /// Serve a grpc:// source on standard input and output, as `wirefs mount grpc://…` starts it
    #[arg(long, conflicts_with = "grpc")]
    stdio: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unheard = writeln!(std::io::stderr(), "wirefs-grpc: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let Some(address) = arguments.grpc else {
        let certificates = match &arguments.source.identity {
            Some(dir) => dir.join("grpc"),
            None => config_dir()?.join("grpc"),
        };
        return bridge::run(&arguments.source.source, &certificates);
    };
    if !address.ip().is_loopback() && !arguments.unprotected && !arguments.tls.protects() {
        bail!(
            "{address} is reached by other machines, and clients are not authenticated\n  next step: serve on \
             127.0.0.1, add --tls-cert, --tls-key and --client-ca, or add --unprotected if all of that network may \
             read and write"
        );
    }
    let tls = arguments.tls.server()?;
    let signals = Signals::take().context("cannot take over the signals")?;
    let source = OpenSource::open(&arguments.source)?;
    let users = source.users();
    let caller = Caller { uid: users.uid, gid: users.gid, pid: 0 };
    let tree = Tree { files: source.files(), caller };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(address, tls, &arguments.source.source, tree, signals));
    // Requests under way end with their connections.
    runtime.shutdown_background();
    source.end();
    served
}

async fn serve(
    address: SocketAddr,
    tls: Option<ServerTlsConfig>,
    source: &OsStr,
    tree: Tree,
    signals: Signals,
) -> Result<()> {
    let cannot = || format!("cannot serve on {address}");
    let listener = TcpListener::bind(address).await.with_context(cannot)?;
    let address = listener.local_addr().with_context(cannot)?;
    // Differs for each run, as far as the clock goes on.
    let verifier = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let service = FileSystemServer::new(Service { tree, verifier })
        .max_decoding_message_size(DATA_BYTES_MAX + HEAD_BYTES_MAX)
        .max_encoding_message_size(DATA_BYTES_MAX + HEAD_BYTES_MAX);
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<FileSystemServer<Service>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTOR)
        .build_v1()?;
    let mut out = std::io::stdout();
    let name = source.to_string_lossy();
    let _unheard = writeln!(out, "serving {name} over gRPC on {address}").and_then(|()| out.flush());
    let ended = tokio::task::spawn_blocking(move || signals.wait());
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls).context("the certificates cannot be used")?;
    }
    server
        .max_concurrent_streams(REQUESTS_MAX)
        // Locks of a client that is cut off end with its connection.
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .add_service(health_service)
        .add_service(reflection)
        .add_service(service)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async {
            let _ended = ended.await;
        })
        .await
        .context("the server failed")
}
