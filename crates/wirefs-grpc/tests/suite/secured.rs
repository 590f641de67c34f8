//! TLS: a gate with certificates admits the clients of its authority, and no others.

use crate::gate::{Gate, path};
use crate::mount::Mount;
use crate::proto::file_system_client::FileSystemClient;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

/// Certificates of one authority, in a directory that goes with them.
struct Certificates {
    dir: PathBuf,
}

impl Certificates {
    fn new(name: &str) -> Certificates {
        let dir = std::env::temp_dir().join(format!("wirefs-grpc-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let certificates = Certificates { dir };
        let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let ends = ["-days", "2", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority"];
        certificates.openssl(&[&request[..], &ends[..]].concat());
        certificates.issue("server");
        certificates.issue("client");
        certificates
    }

    fn issue(&self, name: &str) {
        let (key, out, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
        let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2", "-keyout", &key, "-out", &out];
        let extensions =
            ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"];
        self.openssl(&[&request[..], &signed[..], &extensions[..], &["-subj", &subject]].concat());
    }

    fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl").args(arguments).current_dir(&self.dir).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.join(name)).unwrap()
    }

    /// A directory as `--identity` names it.
    fn identity(&self) -> String {
        let dir = self.dir.join("identity");
        fs::create_dir_all(dir.join("grpc")).unwrap();
        for (from, to) in [("ca.pem", "ca.pem"), ("client.pem", "cert.pem"), ("client.key", "key.pem")] {
            fs::copy(self.dir.join(from), dir.join("grpc").join(to)).unwrap();
        }
        dir.to_str().unwrap().to_owned()
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.dir);
    }
}

async fn connect(gate: &Gate, config: ClientTlsConfig) -> Result<u64, String> {
    let endpoint = Channel::from_shared(format!("https://{}", gate.address)).unwrap();
    let channel =
        endpoint.tls_config(config).unwrap().connect().await.map_err(|error| format!("{error:?}"))?;
    let found =
        FileSystemClient::new(channel).lookup(path("f")).await.map_err(|status| status.to_string())?;
    Ok(found.into_inner().size)
}

// S-190
#[test]
fn a_gate_with_certificates_admits_clients_of_its_authority_alone() {
    let (ours, theirs) = (Certificates::new("ours"), Certificates::new("theirs"));
    let gate = {
        let (cert, key, authority) = (ours.file("server.pem"), ours.file("server.key"), ours.file("ca.pem"));
        Gate::start(&["--tls-cert", &cert, "--tls-key", &key, "--client-ca", &authority])
    };
    fs::write(gate.file("f"), "contents").unwrap();
    let config = |certificates: &Certificates| {
        let identity = Identity::from_pem(certificates.read("client.pem"), certificates.read("client.key"));
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ours.read("ca.pem"))).identity(identity)
    };
    gate.runtime.block_on(async {
        assert_eq!(connect(&gate, config(&ours)).await, Ok(8));
        connect(&gate, config(&theirs)).await.unwrap_err();
        let nobody = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ours.read("ca.pem")));
        connect(&gate, nobody).await.unwrap_err();
        // A server that our authority does not know.
        let wrong = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(theirs.read("ca.pem")));
        connect(&gate, wrong).await.unwrap_err();
    });
    let mount = Mount::new(&gate, "grpcs", &["-o", &format!("identity={}", ours.identity())]);
    assert_eq!(fs::read(mount.path("f")).unwrap(), b"contents");
}

#[test]
fn an_address_that_others_reach_needs_authentication_of_clients() {
    let certificates = Certificates::new("open");
    let (cert, key) = (certificates.file("server.pem"), certificates.file("server.key"));
    let refused = Command::new(crate::gate::GATE)
        .args([Path::new("/"), Path::new("--grpc"), Path::new("0.0.0.0:0")])
        .args(["--tls-cert", &cert, "--tls-key", &key])
        .output()
        .unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("--client-ca"), "{said}");
}

// S-164
#[test]
fn a_key_that_other_users_can_read_is_refused() {
    let certificates = Certificates::new("exposed");
    let (cert, key) = (certificates.file("server.pem"), certificates.file("server.key"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = Command::new(crate::gate::GATE)
        .args(["/", "--grpc", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key])
        .output()
        .unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("chmod 600"), "{said}");
}
