//! Reaching an SFTP server.

use std::io::{Read, Write};

use wirefs_carrier::DialError;
use wirefs_carrier::ssh::{Subsystem, SubsystemDial};

/// Connects to an SFTP server, as often as needed.
pub trait SftpDial: Send + Sync + 'static {
    /// Connects. `is_interactive`: a user may be asked.
    ///
    /// # Errors
    /// The connection cannot be started.
    fn dial(&self, is_interactive: bool) -> Result<SftpStream, DialError>;

    /// Returns the name of the host, for messages.
    fn host(&self) -> String;
}

/// A connection to an SFTP server.
pub struct SftpStream {
    /// The bytes from the server.
    pub source: Box<dyn Read + Send>,
    /// The bytes to the server.
    pub sink: Box<dyn Write + Send>,
    /// Ends the connection.
    pub close: Box<dyn Fn() + Send + Sync>,
    /// Returns the reason for an end of the connection.
    pub explain: Box<dyn Fn() -> DialError + Send>,
}

impl SftpDial for SubsystemDial {
    fn dial(&self, is_interactive: bool) -> Result<SftpStream, DialError> {
        let Subsystem { source, sink, closer, process } = SubsystemDial::dial(self, is_interactive)?;
        Ok(SftpStream {
            source,
            sink,
            close: Box::new(move || closer.close()),
            explain: Box::new(move || process.explain()),
        })
    }

    fn host(&self) -> String {
        self.login()
    }
}
