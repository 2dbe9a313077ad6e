"""Every published operation through the Python client that openapi-generator makes of flexd's document.

The client refuses an answer that lacks a required member, has a value outside of an enumeration, or is of another type, so a call
that returns has had its answer checked. FLEXD names the program.
"""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "generated"))

import flexd_client  # noqa: E402
from flexd_client.rest import ApiException  # noqa: E402

PUBLISHED = pathlib.Path(__file__).parent / "published-operations.txt"
PASSWORD = "quick-start-secret"
CONSENT = "2026-01-15T10:30:00Z"
SCHEDULE_CONTROL = "full_asset_schedule_control"
OFF_PEAK = flexd_client.Tariff(off_peak_times="00:00-05:30, 23:30-24:00", timezone="Europe/London")


class Sandbox:
    """A flexd of its own on a free port of the loopback, with the organisation acme."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        program = os.environ["FLEXD"]
        env = dict(os.environ, FLEXD_DATABASE="sqlite:" + self.folder.name + "/flexd.db")

        subprocess.run([program, "org", "add", "Acme", "--username", "acme", "--password", PASSWORD, "--environment", "sandbox"],
                       env=env, cwd=self.folder.name, check=True, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen([program, "serve", "--environment", "sandbox", "--log-level", "warn", "--listen", "127.0.0.1:0"],
                                        env=env, cwd=self.folder.name, stdout=subprocess.PIPE, text=True)

        for line in self.process.stdout:
            if line.startswith("listening on "):
                self.address = line.split()[2]
                return
        raise RuntimeError("flexd does not listen")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


class Recorder(flexd_client.ApiClient):
    """An API client that notes which operation of the document each call was, by method and path."""

    def __init__(self, configuration):
        super().__init__(configuration)
        self.called = set()

    def call_api(self, resource_path, method, *args, **kwargs):
        self.called.add(method + " " + resource_path)
        return super().call_api(resource_path, method, *args, **kwargs)


def site(mpan, street):
    return flexd_client.SiteRequest(mpan=mpan, postcode="ZZ99 1AA", street_address=street, email="resident@example.com",
                                    gave_boundary_meter_consent_at=CONSENT)


def charger(external_id):
    return flexd_client.OnboardingAssetRequest(external_id=external_id, type="charger",
                                               properties=flexd_client.AssetProperties(power_kw=7.4))


class Story(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Sandbox()
        cls.client = Recorder(flexd_client.Configuration(host=cls.service.address))

        api = flexd_client
        cls.auth, cls.sites, cls.assets, cls.events = (kind(cls.client) for kind in (api.AuthApi, api.SitesApi, api.AssetsApi, api.EventsApi))
        cls.meters, cls.rewards, cls.data = (kind(cls.client) for kind in (api.MetersApi, api.RewardsApi, api.DataApi))
        cls.examples, cls.validation = api.ExamplesApi(cls.client), api.ValidationApi(cls.client)

    @classmethod
    def tearDownClass(cls):
        cls.service.stop()

    def refused(self, status, call, *args, **kwargs):
        """Makes a call that has to be refused with a status and an explanation."""
        with self.assertRaises(ApiException) as caught:
            call(*args, **kwargs)
        self.assertEqual(caught.exception.status, status, caught.exception.body)
        self.assertTrue(json.loads(caught.exception.body)["detail"])

    def test_every_published_operation(self):
        self.log_in()
        self.look_up_meters()

        asset_id, site_id = self.onboard()
        self.charge(asset_id)
        self.read_site(site_id, asset_id)
        self.control_battery()
        self.take_apart(site_id, asset_id)

        published = set(PUBLISHED.read_text().splitlines())
        self.assertEqual(len(published), 55)
        self.assertEqual(published - self.client.called, set())

    def test_an_answer_without_a_required_member_is_refused(self):
        """Holds the harness: were answers not checked, the story would show nothing."""
        with self.assertRaises(ValueError):
            flexd_client.MPANValidationResponse()
        with self.assertRaises(ValueError):
            flexd_client.EventResponse(timestamp=CONSENT, status=None)

    def log_in(self):
        self.refused(401, self.auth.read_users_me_auth_users_me_get)
        token = self.auth.login_for_access_token_form_auth_token_form_post(username="acme", password=PASSWORD)
        self.client.configuration.access_token = token.access_token

        self.assertEqual(self.auth.read_users_me_auth_users_me_get().username, "acme")

    def look_up_meters(self):
        api, meters = flexd_client, self.meters
        found = meters.get_meter_info_by_mpan_meter_by_mpan_post(api.MeterByMPANRequest(mpan="1099000010005"))
        meters.get_meter_info_by_address_meter_by_address_post(api.MeterByAddressRequest(address="1 Sandbox Street, ZZ99 1AA"))
        self.assertTrue(self.validation.validate_mpan_validation_mpan_post(api.MPANValidationRequest(mpan="1099000010005")).is_valid)

        listed = meters.search_meters_meter_search_get(postcode="ZZ99 1AA")
        self.assertIn("1099000010005", [meters.get_meter_info_by_meter_ref_meter_meter_ref_mpan_get(m.ref).mpan for m in listed])
        meters.get_meter_info_by_meter_ref_meter_by_ref_meter_ref_get(listed[0].ref)

        self.assertEqual(meters.get_meter_info_by_mpan_deprecated_meter_mpan_get("1099000010005").mpan, found.mpan)
        self.refused(422, meters.get_meter_info_by_address_deprecated_meter_get, "99 Nowhere Street, ZZ99 1AA")

    def onboard(self):
        """Registers homes in each of the ways there are; returns the charger of the first and its site."""
        api, sites = flexd_client, self.sites
        eligible = sites.check_eligibility_entities_site_check_eligibility_post(api.EligibilityCheckRequest(mpan="1099000010005"))
        self.assertIsNotNone(eligible)

        made = sites.onboard_entities_site_onboard_post(api.OnboardRequest(
            site=site("1099000010005", "1 Sandbox Street"), assets=[charger("my-charger")], proposition=SCHEDULE_CONTROL))
        again = sites.initialise_site_entities_site_initialise_post(api.InitialiseRequest(
            site=site("1099000010005", "1 Sandbox Street"), assets=[charger("my-charger")]))
        self.assertEqual(again.site.site_id, made.site.site_id)

        older = sites.onboard_site_and_asset_entities_site_onboard_site_and_asset_post(api.OnboardingRequest(
            site=site("1099000010060", "2 Sandbox Street"), asset=charger("older-charger"),
            dispatch_consent=api.SiteDispatchConsentRequest(dispatch_methods=[SCHEDULE_CONTROL])))
        sites.offboard_site_and_assets_entities_site_site_id_offboard_site_and_assets_post(older.site.id)

        bare = sites.create_site_entities_site_post(site("1099000010079", "3 Sandbox Street"))
        added = self.assets.create_asset_entities_asset_post(api.AssetRequest(external_id="bare", type="charger", site_id=bare.id))
        self.assets.delete_asset_entities_asset_asset_id_delete(added.id)
        sites.delete_site_entities_site_site_id_delete(bare.id)

        return made.assets[0].asset_id, made.site.site_id

    def charge(self, asset_id):
        """A car comes, changes its mind, charges, and leaves."""
        api, events = flexd_client, self.events
        now = api.SandboxApi(self.client).set_clock(api.ClockRequest(local_time="18:00:00")).now
        intent = api.Intent(energy_required_kwh=20, ready_by=now + datetime.timedelta(hours=13), charging_mode="minimise_charging_time")

        # The body of plug-in may be left out, so that the client takes it by name alone.
        events.asset_plug_in_event_entities_asset_asset_id_event_plug_in_post(
            asset_id, plug_in_event_request=api.PlugInEventRequest(tariff=OFF_PEAK, intent=intent))
        schedule = api.SchedulesApi(self.client).get_schedule(asset_id)
        self.assertGreater(len(schedule.periods), 1)
        self.assets.event_handling_status_update_entities_asset_asset_id_callback_event_id_post(
            asset_id, schedule.event_id, api.EventResponse(timestamp=now, status="RECEIVED"))

        events.asset_intent_update_event_entities_asset_asset_id_event_intent_post(asset_id, api.IntentEventRequest(intent=intent))
        self.assertEqual(self.assets.get_latest_intent_entities_asset_asset_id_intent_get(asset_id).intent.energy_required_kwh, 20)
        events.asset_tariff_update_event_entities_asset_asset_id_event_tariff_update_post(asset_id, api.TariffUpdateEventRequest(tariff=OFF_PEAK))

        soon = now + datetime.timedelta(hours=1)
        events.asset_charge_now_event_entities_asset_asset_id_event_charge_now_post(asset_id, api.ChargeNowEventRequest(end_at=soon))
        events.asset_charge_now_deleted_event_entities_asset_asset_id_event_charge_now_deleted_post(asset_id)
        events.asset_plug_out_event_entities_asset_asset_id_event_plug_out_post(asset_id)
        events.asset_event_entities_asset_asset_id_event_post(
            asset_id, api.AssetEventRequest(event_type="plug_in", intent=intent, tariff=OFF_PEAK))

        end = now.replace(minute=0, second=0)
        verdicts = self.data.post_readings_data_readings_post(api.ReadingsDataPoints(readings=[api.ReadingDataPoint(
            asset_id=asset_id, label="charger_consumption_energy_kwh", value=0.0,
            start_timestamp=end - datetime.timedelta(minutes=30), end_timestamp=end)]))
        self.assertTrue(verdicts.responses[0].accepted)

    def read_site(self, site_id, asset_id):
        api, sites, assets = flexd_client, self.sites, self.assets
        self.assertEqual(len(sites.get_sites_entities_site_get().sites), 1)
        self.assertEqual(sites.get_site_entities_site_site_id_get(site_id).mpan, "1099000010005")
        sites.update_site_entities_site_site_id_patch(site_id, api.SiteUpdateRequest(
            email="other@example.com", tariff=api.TariffRequest(tariff_type="dual_rate", tariff_cheap_start_time="00:30:00", tariff_cheap_end_time="05:30:00")))
        sites.get_site_eligibility_entities_site_site_id_eligibility_get(site_id)
        sites.get_site_flex_events_entities_site_site_id_flex_events_get(site_id)
        self.assertTrue(sites.get_price_curve_entities_site_site_id_price_curve_get(site_id).half_hourly_traded_prices)

        self.assertEqual(len(assets.get_assets_entities_asset_get().assets), 1)
        self.assertEqual(assets.get_asset_entities_asset_asset_id_get(asset_id).external_id, "my-charger")
        self.assertEqual(assets.get_asset_by_external_id_entities_asset_external_id_external_id_get("my-charger").id, asset_id)
        assets.update_asset_entities_asset_asset_id_patch(asset_id, api.AssetUpdateRequest(properties=api.AssetProperties(power_kw=7)))
        self.assertTrue(assets.get_price_curve_entities_asset_asset_id_price_curve_get(asset_id).half_hourly_traded_prices)

        sites.add_site_meter_consent_entities_site_site_id_meter_consent_post(
            site_id, api.SiteMeterConsentRequest(gave_boundary_meter_consent_at=CONSENT))
        sites.add_site_auth_token_entities_site_site_id_token_post(site_id, api.SiteAuthTokenRequest(
            access_token="a", refresh_token="b", token_type="bearer", expires_in=3600))
        self.refused(422, sites.initiate_site_oauth_entities_site_site_id_oauth_provider_initiate_get, site_id, "nobody")

        self.rewards.get_balance_info_rewards_site_id_info_get(site_id)
        self.rewards.get_rewards_balance_withdrawal_url_rewards_site_id_url_balance_get(site_id, "https://example.com/back")
        self.rewards.get_transaction_history_rewards_site_id_transactions_get(site_id)
        self.auth.create_component_token_auth_component_token_post(
            "resident-1", "https://example.com", gave_boundary_meter_consent_at=CONSENT)

    def control_battery(self):
        api, sites = flexd_client, self.sites
        battery = api.OnboardingAssetRequest(external_id="my-battery", type="battery",
                                             properties=api.AssetProperties(power_kw=3.6, capacity_kwh=9.5))
        made = sites.onboard_entities_site_onboard_post(api.OnboardRequest(
            site=site("1099000010041", "4 Sandbox Street"), assets=[battery], proposition=SCHEDULE_CONTROL))
        self.assets.get_battery_schedule_entities_asset_asset_id_battery_schedule_get(made.assets[0].asset_id)

        self.examples.get_example_dispatch_event_examples_dispatch_event_get()
        self.examples.get_example_ocpp_charging_profile_examples_ocpp_charging_profile_get()

    def take_apart(self, site_id, asset_id):
        """Control ends, returns for an hour's pause, and ends for good."""
        api, sites = flexd_client, self.sites
        methods = api.SiteDispatchConsentRequest(dispatch_methods=[SCHEDULE_CONTROL])
        sites.remove_site_dispatch_consent_entities_site_site_id_dispatch_deconsent_post(site_id, methods)
        sites.add_site_dispatch_consent_entities_site_site_id_dispatch_consent_post(
            site_id, api.SiteDispatchConsentRequest(dispatch_methods=["limited_pause"]))

        now = api.SandboxApi(self.client).get_clock().now
        blocks = [api.ChargingScheduleBlock(start_timestamp=now.isoformat(), end_timestamp=(now + datetime.timedelta(hours=4)).isoformat())]
        paused = self.events.asset_plug_in_schedule_event_entities_asset_asset_id_event_plug_in_schedule_post(
            asset_id, api.PlugInScheduleEventRequest(charging_schedule=blocks))
        self.assertTrue(paused.modified_charging_schedule)

        sites.unenrol_site_entities_site_site_id_unenrol_post(site_id, api.UnenrolRequest(proposition=SCHEDULE_CONTROL))
        sites.enrol_site_entities_site_site_id_enrol_post(
            site_id, api.EnrolRequest(proposition=SCHEDULE_CONTROL, override_withdrawal=True))


if __name__ == "__main__":
    unittest.main()
