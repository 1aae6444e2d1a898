"""Lists the promises of the README, each with the tests that prove it.

A promise that loses its last test loses its place here, and then in the README.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """What the bridge promises, and where that is proven."""

    number: int
    sentence: str
    """As the README says it."""
    tests: tuple[str, ...]
    """`folder/file.py::test`, below `tests`."""


PROMISES = (
    Promise(
        1,
        "An acknowledged event is never lost: it leads to exactly one turn, or to a failure that "
        "people see.",
        (
            "scenarios/test_crashes.py::test_kill_9_around_any_commit_keeps_every_promise",
            "scenarios/test_crashes.py::test_a_second_cut_is_a_visible_failure_and_never_a_third_try",
            "scenarios/test_random_crashes.py::test_nothing_is_lost_or_doubled_in_a_long_storm",
            "scenarios/test_store_trouble.py::test_nothing_is_acknowledged_while_the_disk_is_full_and_nothing_is_lost",
            "scenarios/test_shutdown.py::test_events_that_arrive_while_the_bridge_leaves_are_kept_or_refused_but_never_lost",
            "scenarios/test_slack.py::test_a_bridge_killed_after_the_acknowledgement_answers_once",
            "scenarios/test_slack.py::test_a_bridge_killed_between_the_acknowledgement_and_the_look_up_knows_who_spoke",
            "scenarios/test_github.py::test_what_was_said_while_the_bridge_was_down_is_answered_once",
            "scenarios/test_linear_deliveries.py::test_an_outage_of_an_hour_leaves_the_webhook_on_and_handles_every_event_once",
            "scenarios/test_linear_deliveries.py::test_a_bridge_that_dies_after_the_acknowledgement_goes_on_when_it_is_back",
            "unit/services/slack/test_adapter.py::test_an_envelope_is_stored_and_acknowledged_before_anything_is_asked_of_slack",
        ),
    ),
    Promise(
        2,
        "A crash costs at most one repeated edit, never a second turn from one event.",
        (
            "scenarios/test_crashes.py::test_kill_9_around_any_commit_keeps_every_promise",
            "scenarios/test_crashes.py::test_kill_9_when_the_agent_speaks_keeps_every_promise",
            "scenarios/test_crashes.py::test_kill_9_at_two_steps_keeps_every_promise",
            "scenarios/test_crashes.py::test_a_post_is_neither_lost_nor_repeated_when_the_crash_came_while_it_was_sent",
            "scenarios/test_random_crashes.py::test_nothing_is_lost_or_doubled_when_the_bridge_is_killed_at_random_moments",
            "scenarios/test_repository_crashes.py::test_a_crash_while_opening_or_shipping_is_repaired",
            "scenarios/test_queue_and_stop.py::test_the_same_event_again_leads_to_nothing_new",
            "attacks/test_webhooks.py::test_one_event_leads_to_one_turn_however_often_it_is_sent",
        ),
    ),
    Promise(
        3,
        "Only those who may trigger an agent can make it act.",
        (
            "unit/core/test_intake.py::test_a_refused_person_changes_nothing_in_a_place",
            "scenarios/test_slack.py::test_guests_and_strangers_are_refused_with_a_reason",
            "scenarios/test_slack.py::test_an_approval_counts_from_members_only_and_says_who_gave_it",
            "scenarios/test_github.py::test_whoever_may_not_is_told_so_and_nothing_happens",
            "scenarios/test_github.py::test_forged_webhooks_are_refused_and_lead_to_nothing",
            "scenarios/test_linear.py::test_guests_strangers_and_automations_are_told_no",
            "scenarios/test_api.py::test_nobody_gets_in_without_the_token",
            "attacks/test_asks_show_what_runs.py::test_only_who_may_decides_an_ask_on_slack_and_only_once",
            "attacks/test_installations.py::test_a_strangers_installation_is_neither_heard_nor_looked_at",
            "attacks/test_webhooks.py::test_what_the_other_agent_signs_or_gets_is_refused",
        ),
    ),
    Promise(
        4,
        "An agent gets the environment variables on its list and no others. With isolation it "
        "reads nothing of the bridge, of another agent or of another conversation, neither itself "
        "nor through an agent that you did not name for it, and does not reach the bridge's own "
        "port; without isolation, the page, `doctor` and the start-up output say so.",
        (
            "attacks/test_deputies.py::test_an_agent_gets_through_another_nothing_that_it_has_not",
            "scenarios/test_isolation.py::test_an_agents_environment_is_the_allow_list_and_its_own_keys",
            "scenarios/test_isolation.py::test_an_isolated_agent_reads_nothing_of_the_bridge_of_others_or_of_the_person",
            "scenarios/test_isolation.py::test_the_api_says_in_words_what_an_agent_without_isolation_can_read",
            "attacks/test_sandbox.py::test_nothing_of_the_bridge_or_the_person_is_read",
            "attacks/test_sandbox.py::test_another_agent_and_another_session_are_not_read",
            "attacks/test_homes.py::test_no_conversation_reads_what_was_said_in_another",
            "attacks/test_network.py::test_an_agent_does_not_reach_the_bridge_over_loopback",
            "attacks/test_probe.py::test_an_agent_that_must_be_isolated_and_is_not_stays_closed_and_everybody_is_told",
        ),
    ),
    Promise(
        5,
        "No secret the bridge knows leaves in a usual form through logs, database, page or posted "
        "text. An agent with a network can always send its own key.",
        (
            "attacks/test_secrets.py::test_a_secret_said_in_any_usual_form_does_not_come_out",
            "attacks/test_secrets.py::test_no_answer_over_http_holds_a_secret",
            "scenarios/test_secrets.py::test_a_secret_that_an_agent_says_goes_nowhere",
            "scenarios/test_secrets.py::test_the_bridges_own_secrets_read_by_an_agent_go_nowhere",
            "unit/test_vault.py::test_every_form_of_a_secret_is_masked",
            "unit/test_vault.py::test_no_usual_form_of_a_random_secret_passes_whatever_the_borders",
        ),
    ),
    Promise(
        6,
        "The bridge does not start in an unsafe configuration; it names the setting and the "
        "remedy.",
        (
            "attacks/test_configurations.py::test_an_unsafe_configuration_refuses_to_start",
            "attacks/test_configurations.py::test_a_data_folder_of_another_user_refuses_to_start",
            "attacks/test_masks.py::test_a_secret_whose_folder_cannot_be_hidden_refuses_to_start",
            "attacks/test_settings_file.py::test_a_settings_file_that_others_can_write_is_refused",
            "unit/test_config_refusals.py::test_a_broken_configuration_refuses_with_one_line",
        ),
    ),
    Promise(
        7,
        "Stop stops: nothing happens after it, and what waits behind it is kept or dropped as "
        "asked.",
        (
            "scenarios/test_queue_and_stop.py::test_stop_ends_the_turn_and_holds_what_waits_until_the_next_message",
            "attacks/test_stop.py::test_stop_ends_the_agent_and_all_that_it_started_and_its_conversation_goes_on",
            "attacks/test_stop.py::test_what_a_command_leaves_in_the_background_ends_with_its_turn",
            "attacks/test_between_turns.py::test_a_push_between_turns_is_refused_in_words_and_changes_nothing",
            "scenarios/test_queue_and_stop.py::test_stop_all_also_drops_what_waits",
            "scenarios/test_queue_and_stop.py::test_nothing_that_the_agent_does_after_a_stop_is_shown",
            "scenarios/test_queue_and_stop.py::test_a_stop_before_the_prompt_keeps_the_agent_from_ever_hearing_it",
            "scenarios/test_crashes.py::test_a_turn_that_was_cut_off_while_it_was_being_stopped_ends_as_stopped",
            "scenarios/test_slack.py::test_the_native_stop_button_and_the_command_stop_the_turn",
            "scenarios/test_github.py::test_stop_stops_by_mention_and_without",
            "scenarios/test_linear.py::test_stop_ends_the_work_with_one_final_word",
        ),
    ),
)
