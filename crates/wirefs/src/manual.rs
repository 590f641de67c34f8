//! Man pages and shell completions, generated from the argument definitions.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;

/// The sections that follow the generated ones on each page.
const FILES: &str = "\
.SH FILES
.TP
\\fI$XDG_CONFIG_HOME/wirefs\\fR, \\fI~/.config/wirefs\\fR
The keys: identity.pem, identity.pub, known_hosts, authorized_keys.
.TP
\\fI$XDG_STATE_HOME/wirefs\\fR, \\fI~/.local/state/wirefs\\fR
A log for each background mount; journals of changes that servers do not have yet; quarantined changes.
.TP
\\fI$XDG_CACHE_HOME/wirefs\\fR, \\fI~/.cache/wirefs\\fR
Cached data that outlives mounts. It may be deleted while nothing is mounted.
.TP
\\fI$XDG_RUNTIME_DIR/wirefs\\fR, \\fI/tmp/wirefs-UID\\fR, root: \\fI/run/wirefs\\fR
A control socket for each mount.
.TP
\\fI/etc/fstab\\fR
Lines of type wirefs or fuse.wirefs.
.SH \"EXIT STATUS\"
.TP
0
Success.
.TP
1
The command failed; standard error names the problem and the next step. For umount: also if the server did not take all
changes.
.TP
2
The command line is wrong.
";

/// Prints the main page, or writes all of them into a directory.
pub(crate) fn pages(directory: Option<&Path>) -> Result<()> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let commands = visible(&command);
    match directory {
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
            for command in &commands {
                let path = directory.join(format!("{}.1", page_name(command)));
                let page = page(command, &commands).context("cannot make a page")?;
                std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
            }
            Ok(())
        }
        None => print(&page(&command, &commands).context("cannot make the page")?),
    }
}

/// Returns a command and all commands below it, without hidden ones.
fn visible(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|command| !command.is_hide_set()).flat_map(visible);
    std::iter::once(command).chain(below).collect()
}

/// The name with those of the commands above: `wirefs-mount`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &Command, all: &[&Command]) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(page_name(command)).render(&mut page)?;
    page.write_all(FILES.as_bytes())?;
    let name = page_name(command);
    let others: Vec<String> = all
        .iter()
        .map(|other| page_name(other))
        .filter(|other| *other != name)
        .map(|other| format!("\\fB{}\\fR(1)", other.replace('-', "\\-")))
        .collect();
    writeln!(page, ".SH \"SEE ALSO\"\n{}, \\fBmount\\fR(8), \\fBfusermount3\\fR(1)", others.join(", "))?;
    Ok(page)
}

/// Completes the mountpoints of the commands that take one, for bash.
const BASH_MOUNTPOINTS: &str = r#"
_wirefs_mountpoints() {
    awk '/ - fuse\.wirefs / { print $5 }' /proc/self/mountinfo
}
_wirefs_or_mountpoints() {
    case "${COMP_WORDS[1]}" in
        umount | unmount | status | sync | why)
            if [[ "$2" != -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$(_wirefs_mountpoints)" -- "$2")
                return
            fi
            ;;
    esac
    _wirefs "$@"
}
complete -F _wirefs_or_mountpoints -o bashdefault -o default wirefs
"#;

/// The same for fish.
const FISH_MOUNTPOINTS: &str = r#"
complete -c wirefs -n "__fish_seen_subcommand_from umount unmount status sync why" -f -a "(awk '/ - fuse\.wirefs / { print \$5 }' /proc/self/mountinfo)"
"#;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut without_hidden(&Arguments::command()), "wirefs", &mut script);
    script.extend_from_slice(match shell {
        Shell::Bash => BASH_MOUNTPOINTS.as_bytes(),
        Shell::Fish => FISH_MOUNTPOINTS.as_bytes(),
        _ => b"",
    });
    print(&script)
}

/// Returns the command without hidden options, which completions would offer.
fn without_hidden(command: &Command) -> Command {
    let mut shown = Command::new(command.get_name().to_owned())
        .args(command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|command| !command.is_hide_set()).map(without_hidden))
        .visible_aliases(command.get_visible_aliases().map(str::to_owned).collect::<Vec<_>>());
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(version.to_owned());
    }
    shown
}

/// A reader such as `head` may close the pipe early.
fn print(text: &[u8]) -> Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        Ok(()) | Err(_) => Ok(()),
    }
}
