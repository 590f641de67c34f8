use super::*;
use crate::limits::{INVITATION_TIME, INVITATION_TRIES};
use wirefs_op::Time;

const NOW: Time = Time(1);

fn introduction(number: u8, name: &str) -> Introduction {
    Introduction { key: NodeKey([number; 32]), name: NodeName::new(name).unwrap() }
}

fn invitation(code: &str) -> Invitation {
    Invitation::new(InvitationCode::parse(code).unwrap(), introduction(1, "inviter"), NOW)
}

fn joiner(code: &str) -> (Joiner, Vec<u8>) {
    Joiner::begin(&InvitationCode::parse(code).unwrap(), &introduction(2, "joiner"), [7; 64])
}

/// Runs a conversation up to the joiner's proof.
fn proved(invitation: &Invitation, code: &str) -> (PendingGuest, WaitingJoiner, Vec<u8>) {
    let (joiner, hello) = joiner(code);
    let (pending, reply) = invitation.receive_hello(NOW, &hello, [9; 64]).ok().unwrap();
    let (waiting, proof) = joiner.receive_hello(&reply).ok().unwrap();
    (pending, waiting, proof)
}

/// S-174: the same code exchanges both keys and names, and is good once.
#[test]
fn code_exchanges_both_introductions_once() {
    let mut invitation = invitation("k7-4fm-q2x");
    let (second, _, second_proof) = proved(&invitation, "k7-4fm-q2x");
    let (pending, waiting, proof) = proved(&invitation, "K74FMQ2X");
    let admission = invitation.receive_proof(NOW, pending, &proof).unwrap();
    assert_eq!(admission.guest, introduction(2, "joiner"));
    assert_eq!(waiting.receive_proof(&admission.reply), Ok(introduction(1, "inviter")));
    assert_eq!(invitation.receive_proof(NOW, second, &second_proof).unwrap_err(), Refusal::Over);
    assert!(invitation.receive_hello(NOW, &joiner("k7-4fm-q2x").1, [9; 64]).is_err());
}

/// S-175: a wrong code costs a try, three end the invitation, and ten minutes do.
#[test]
fn wrong_codes_and_time_end_an_invitation() {
    let mut open = invitation("k7-4fm-q2x");
    for left in (0..INVITATION_TRIES).rev() {
        let (pending, waiting, proof) = proved(&open, "k7-4fm-q2y");
        let refused = open.receive_proof(NOW, pending, &proof).unwrap_err();
        assert_eq!((refused, open.tries_left()), (Refusal::WrongCode, left));
        assert_eq!(
            waiting.receive_proof(&refused.message()),
            Err(InvitationError::Refused(Refusal::WrongCode))
        );
    }
    assert!(open.receive_hello(NOW, &joiner("k7-4fm-q2x").1, [9; 64]).is_err());

    let mut late = invitation("k7-4fm-q2x");
    let (pending, _, proof) = proved(&late, "k7-4fm-q2x");
    let after = NOW + INVITATION_TIME;
    assert_eq!(late.receive_proof(after, pending, &proof).unwrap_err(), Refusal::Over);
    assert_eq!(late.tries_left(), INVITATION_TRIES);
}

#[test]
fn conversations_without_a_proof_cost_no_try() {
    let mut invitation = invitation("k7-4fm-q2x");
    for _ in 0..100 {
        let _silent = invitation.receive_hello(NOW, &joiner("00-000-000").1, [9; 64]).ok().unwrap();
        assert!(invitation.receive_hello(NOW, b"GET / HTTP/1.1", [9; 64]).is_err());
        let (pending, _, proof) = proved(&invitation, "k7-4fm-q2x");
        let malformed = invitation.receive_proof(NOW, pending, proof.split_last().unwrap().1).unwrap_err();
        assert_eq!(malformed, Refusal::Malformed);
    }
    assert_eq!(invitation.tries_left(), INVITATION_TRIES);
    let (pending, _, proof) = proved(&invitation, "k7-4fm-q2x");
    assert!(invitation.receive_proof(NOW, pending, &proof).is_ok());
}

/// A machine between the two exchanges each byte of the hellos, the keys among them.
#[test]
fn changed_hello_or_proof_is_noticed() {
    let mut invitation = invitation("k7-4fm-q2x");
    let (_, hello) = joiner("k7-4fm-q2x");
    for at in 38..hello.len() - 1 {
        let (joiner, mut changed) = joiner("k7-4fm-q2x");
        changed[at] ^= 1;
        let mut invitation = self::invitation("k7-4fm-q2x");
        let Ok((pending, reply)) = invitation.receive_hello(NOW, &changed, [9; 64]) else { continue };
        let (_, proof) = joiner.receive_hello(&reply).ok().unwrap();
        assert_eq!(invitation.receive_proof(NOW, pending, &proof).unwrap_err(), Refusal::WrongCode, "{at}");
    }
    let (pending, waiting, proof) = proved(&invitation, "k7-4fm-q2x");
    // The joiner's own proof, sent back, is not the inviter's.
    let mut reflected = proof.clone();
    reflected[4] += 1;
    assert_eq!(waiting.receive_proof(&reflected), Err(InvitationError::NotInviter));
    assert!(invitation.receive_proof(NOW, pending, &proof).is_ok());
}

/// An impostor that answered for the label learns nothing, and is not taken for the inviter.
#[test]
fn impostor_without_the_code_is_refused() {
    let mut impostor = invitation("k7-000-000");
    let (pending, waiting, proof) = proved(&impostor, "k7-4fm-q2x");
    assert!(impostor.receive_proof(NOW, pending, &proof).is_err());
    let forged = message::proof(secret::Side::Inviter, &[0; 32]);
    assert_eq!(waiting.receive_proof(&forged), Err(InvitationError::NotInviter));
}

#[test]
fn offer_answers_queries_for_its_label_while_it_is_open() {
    let invitation = invitation("k7-4fm-q2x");
    let code = InvitationCode::parse("k7-999-999").unwrap();
    let asked = query(&code);
    let offer = invitation.offer(NOW, &asked, 6443).unwrap();
    assert_eq!((offered_port(&code, &offer), offer.len()), (Some(6443), asked.len()));
    let other = InvitationCode::parse("k8-4fm-q2x").unwrap();
    assert_eq!((invitation.offer(NOW, &query(&other), 1), offered_port(&other, &offer)), (None, None));
    assert_eq!(invitation.offer(NOW + INVITATION_TIME, &asked, 1), None);
    assert_eq!(invitation.offer(NOW, &offer, 1), None);
}

#[test]
fn code_is_read_as_people_type_it_and_is_not_logged() {
    let code = InvitationCode::from_random([0, 33, 10, 255, 18, 20, 1, 30]);
    assert_eq!(code.to_string(), "01-azj-m1y");
    for typed in ["01-azj-m1y", "OLAZJMIY", " 01azj m1y\n"] {
        assert_eq!(InvitationCode::parse(typed), Some(code.clone()), "{typed}");
    }
    for bad in ["", "01-azj-m1", "01-azj-m1yy", "01-azj-m1u", "01-azj-m1ä"] {
        assert_eq!(InvitationCode::parse(bad), None, "{bad}");
    }
    assert_eq!(format!("{code:?}"), "InvitationCode");
}

/// The bytes of PROTOCOL.md.
#[test]
fn messages_have_the_documented_bytes() {
    let code = InvitationCode::parse("k7-4fm-q2x").unwrap();
    assert_eq!(query(&code), b"WFI1\x00k7\0\0");
    assert_eq!(invitation("k7-4fm-q2x").offer(NOW, &query(&code), 6443).unwrap(), b"WFI1\x01k7\x2b\x19");
    assert_eq!(Refusal::WrongCode.message(), b"WFI1\x06\x01");
    let (_, hello) = joiner("k7-4fm-q2x");
    assert_eq!(
        (&hello[..6], &hello[38..], hello.len()),
        (&b"WFI1\x02A"[..], &[&[2; 32][..], b"\x06joiner"].concat()[..], 77)
    );
    let (_, _, proof) = proved(&invitation("k7-4fm-q2x"), "k7-4fm-q2x");
    assert_eq!((&proof[..5], proof.len()), (&b"WFI1\x04"[..], 37));
}
