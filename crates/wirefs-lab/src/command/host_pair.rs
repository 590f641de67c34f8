//! The two hosts of the subcommands `link` and `up`, and their shell variables.

use std::path::{Path, PathBuf};

use wirefs_lab::control::ControlSocket;
use wirefs_lab::{Host, Lab, LabError, LinkHandle, LinkOptions};

/// A server, a client, and the link between them. The fields are dropped in this order.
pub(crate) struct HostPair {
    control: Option<(ControlSocket, PathBuf)>,
    /// The link; its first host is the server.
    pub(crate) link: LinkHandle,
    /// The host `server`.
    pub(crate) server: Host,
    /// The host `client`.
    pub(crate) client: Host,
    _lab: Lab,
}

impl HostPair {
    /// Creates the hosts and the link.
    pub(crate) fn new(
        name: &str,
        options: &LinkOptions,
        control: Option<&Path>,
    ) -> Result<HostPair, LabError> {
        let lab = Lab::new(name)?;
        let (server, client) = (lab.host("server")?, lab.host("client")?);
        let link = lab.link(&server, &client, options.profile())?;
        let control = match control {
            Some(path) => Some((ControlSocket::open(path, link.clone())?, path.to_owned())),
            None => None,
        };
        Ok(HostPair { control, link, server, client, _lab: lab })
    }

    /// Returns the names and addresses as shell variables.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("WIREFS_LAB_SERVER", self.server.name().to_owned()),
            ("WIREFS_LAB_CLIENT", self.client.name().to_owned()),
            ("WIREFS_LAB_SERVER_ADDRESS", self.link.address_a().to_string()),
            ("WIREFS_LAB_CLIENT_ADDRESS", self.link.address_b().to_string()),
        ];
        let control = self.control.iter().map(|(_, path)| ("WIREFS_LAB_CONTROL", path.display().to_string()));
        variables.extend(control);
        variables
    }
}
