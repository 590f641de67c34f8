use std::os::unix::ffi::OsStringExt;

use super::*;

/// Returns the words as a POSIX shell reads the quoted text.
fn through_shell(words: &[&[u8]]) -> Vec<u8> {
    let mut line = b"printf \"%s|\" ".to_vec();
    for word in words {
        line.extend(quote(word));
        line.push(b' ');
    }
    Command::new("sh").arg("-c").arg(OsString::from_vec(line)).output().unwrap().stdout
}

#[test]
fn any_path_is_one_shell_word() {
    for path in
        [&b"a b"[..], b"it's", b"$HOME", b"`id`", b"\xff\xfe\\n", b"", b"-rf", b"a\nb", b"''", b"*;&|<>!"]
    {
        let expected = [path, b"|"].concat();
        assert_eq!(through_shell(&[path]), expected, "{path:?}");
    }
}

#[test]
fn plain_paths_are_not_quoted() {
    assert_eq!(quote(b"/srv/data-1.0"), b"/srv/data-1.0");
}

#[test]
fn the_scripts_survive_shells_that_quote_differently() {
    assert!(!SERVE.contains(['\'', '\\', '\n', '!']), "{SERVE}");
}

#[test]
fn a_host_cannot_smuggle_options() {
    let login = Login { user: Some("me".into()), host: "there".into(), port: Some(2222) };
    let command = SshOptions::default().command(&login, Questions::None, OsStr::new("run"));
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    assert_eq!(words[words.len() - 3..], ["--", "me@there", "run"]);
    assert!(words.contains(&"BatchMode=yes".to_owned()));
    // S-188
    assert!(["-a", "-x", "ClearAllForwardings=yes"].iter().all(|word| words.contains(&(*word).to_owned())));
    assert!(words.windows(2).any(|pair| pair == ["-p", "2222"]));
    let options = SshOptions::default().with_command("ssh -i key");
    assert_eq!(options.shown(&login), "ssh -i key -p 2222 me@there");
}

#[test]
fn a_command_with_arguments_is_split_at_blanks() {
    let options = SshOptions::default().with_command("  ssh -p 2222 ");
    assert_eq!((options.program(), options.arguments), ("ssh".into(), vec!["-p".into(), "2222".into()]));
}
