use super::*;

#[test]
fn key_file_of_another_kind_is_reported_and_not_replaced() {
    let directory = std::env::temp_dir().join(format!("wirefs-carrier-identity-{}", std::process::id()));
    private_file::make_directory(&directory).unwrap();
    let path = directory.join(KEY_FILE);
    assert!(private_file::create(&path, "not a key\n", 0o600).unwrap());
    let error = Identity::open(&directory).unwrap_err();
    assert_eq!(error.path, path);
    assert!(error.to_string().contains("is not an ed25519 private key; move it away"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "not a key\n");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn generated_key_round_trips() {
    let path = Path::new("identity.pem");
    let pem = generate(path).unwrap();
    assert!(pem.lines().all(|line| line.len() <= PEM_LINE_CHARS));
    let identity = Identity::from_pem(path, &pem).unwrap();
    assert_eq!(PublicKey::parse(&identity.line()), Some(identity.public_key()));
    assert_eq!(Identity::from_pem(path, &pem).unwrap().public_key(), identity.public_key());
}

#[test]
fn signature_verifies_with_the_public_key() {
    let path = Path::new("identity.pem");
    let identity = Identity::from_pem(path, &generate(path).unwrap()).unwrap();
    let signature = identity.sign(b"a message").unwrap();
    let key = identity.public_key();
    let public = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, key.raw());
    assert!(public.verify(b"a message", &signature).is_ok());
    assert!(public.verify(b"another one", &signature).is_err());
}
