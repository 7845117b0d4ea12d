"""Dynamic configuration: every broker follows the changes of configurations in ZooKeeper
(docs/kafka/zookeeper.md#dynamic-configuration, CP-201, CP-202).

A change writes the entity's node and then a sequential notification. Every broker watches the
notifications, applies those newer than the last it applied, and deletes those older than 15
minutes. When it starts, it replays all notifications and then loads every entity's configuration,
because older notifications may have been deleted.

A new topic has a configuration node but no notification: a broker reads the node when it first
hosts the topic (``fetch``). Source: Kafka's ``DynamicConfigManager``, ``TopicConfigHandler``,
``BrokerConfigHandler``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...protocol import znode_paths, znode_payloads
from ...protocol.awaiting import Task
from ...protocol.config import BrokerConfig, TopicConfig, definitions
from ...protocol.errors import KafkaError
from ...protocol.host import Host
from ...protocol.release_configs import ConfigException, release_configs
from ...protocol.versions import Behaviour
from ..controller.controller import KafkaController
from ..controller.events import TopicUncleanLeaderElectionEnable, UncleanLeaderElectionEnable
from ..zookeeper.change_notifications import ChangeNotifications
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import Log, ignore_log

_UNCLEAN = "unclean.leader.election.enable"


class DynamicConfigManager:
    """Keeps topic configurations and the broker's dynamic values in step with ZooKeeper.

    ``on_topic_config`` is called with each topic whose values changed. ``on_broker_config``, if
    set, is called when the broker's own values changed.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        zk: KafkaZkClient,
        controller: KafkaController,
        on_topic_config: Callable[[str], object],
        log: Log = ignore_log,
    ) -> None:
        self._broker_id = broker_id
        self._host = host
        self._config = config
        self._behaviour = behaviour
        self._zk = zk
        self._controller = controller
        self._on_topic_config = on_topic_config
        self._log = log
        self.on_broker_config: Callable[[], object] | None = None
        self.on_topic_overrides: Callable[[str, Mapping[str, str]], object] | None = None
        """Called with a topic and its overrides at startup and when they change, but not for a new
        topic (CP-202); raises ``ValueError`` for overrides it cannot use."""
        self.facts: Callable[[], Mapping[str, str]] = dict
        """Returns settings that a real broker's file would contain, but that are not settings of
        this package."""
        self.on_entity_config: dict[str, Callable[[str, Mapping[str, str]], object]] = {}
        """Callback for each type of entity, such as ``users``: called with an entity and its
        values at startup and when they change."""
        self._plain = TopicConfig(config)
        """Configuration that all topics without overrides share. It is replaced when the broker's
        values change, so that values derived from the old object are not reused."""
        self._topics: dict[str, TopicConfig] = {}
        """Configurations of topics that have (or had) overrides, or that were fetched."""
        self._wanted: dict[str, None] = {}
        """Topics whose configuration is about to be read in the background."""
        self._is_following = False
        self._default: dict[str, str] = {}
        self._own: dict[str, str] = {}
        self.followed: ChangeNotifications = ChangeNotifications(
            host, zk, znode_paths.CONFIG_CHANGES, self._apply_change, log
        )
        """The followed notifications of changed configurations, including users and clients."""

    # --- reading

    def topic_config(self, topic: str) -> TopicConfig:
        """Return the values in force for a topic.

        For an unknown topic these are the broker's values. The topic's overrides are then read in
        the background, and ``on_topic_config`` is called if there are any.
        """
        known = self._topics.get(topic)
        if known is not None:
            return known
        if topic not in self._wanted:
            if not self._wanted:
                self._host.call_later_ms(0, lambda: Task(self._fetch_wanted()))
            self._wanted[topic] = None
        return self._plain

    async def _fetch_wanted(self) -> None:
        topics = list(self._wanted)
        try:
            await self.fetch(topics)
        finally:
            for topic in topics:
                self._wanted.pop(topic, None)
        for topic in topics:
            known = self._topics.get(topic)
            if known is not None and known.overrides:
                self._on_topic_config(topic)

    def knows(self, topic: str) -> bool:
        """Return whether a topic's configuration has been read."""
        return topic in self._topics

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics whose configuration has been read: after ``startup``, all existing ones."""
        return tuple(self._topics)

    async def fetch(self, topics: Iterable[str]) -> None:
        """Read the configurations of unknown topics in one batch.

        A broker calls this before it creates the logs of new topics, as creation does not notify.
        """
        missing = [topic for topic in dict.fromkeys(topics) if topic not in self._topics]
        if not missing:
            return
        configs, failed = await self._zk.admin.get_log_configs(missing, self._config)
        for topic, config in configs.items():
            self._topics[topic] = config if config.overrides else self._plain
        for topic, error in failed.items():
            self._log("error", f"configuration of topic {topic} could not be read: {error!r}")

    def forget(self, topic: str) -> None:
        """Forget the configuration of a deleted topic."""
        self._topics.pop(topic, None)

    # --- lifecycle

    async def load(self) -> None:
        """Read and apply the broker's dynamic values, before any other part of the broker starts
        (docs/kafka/brokers.md#start-of-a-broker)."""
        self._default = await self._zk.admin.get_entity_configs(
            znode_paths.BROKERS, znode_paths.DEFAULT_ENTITY
        )
        self._own = await self._zk.admin.get_entity_configs(
            znode_paths.BROKERS, str(self._broker_id)
        )
        self._apply_broker_config()

    async def startup(self) -> None:
        """Start to follow changes: replay the notifications, then load every entity."""
        self._is_following = True
        await self.followed.start()
        for topic, overrides in (
            await self._zk.admin.get_all_entity_configs(znode_paths.TOPICS)
        ).items():
            self._topic_changed(topic, overrides)
        for broker, values in (
            await self._zk.admin.get_all_entity_configs(znode_paths.BROKERS)
        ).items():
            self._broker_changed(broker, values)
        for entity_type in self.on_entity_config:
            await self._load_entities(entity_type)

    async def _load_entities(self, entity_type: str) -> None:
        """Report every entity of a type; for users, also the clients configured below each user."""
        stored = await self._zk.admin.get_all_entity_configs(entity_type)
        if entity_type == znode_paths.USERS:
            for user in list(stored):
                below = f"{znode_paths.USERS}/{user}/{znode_paths.CLIENTS}"
                for client, values in (await self._zk.admin.get_all_entity_configs(below)).items():
                    stored[f"{user}/{znode_paths.CLIENTS}/{client}"] = values
        for entity, values in stored.items():
            self._entity_changed(entity_type, entity, values)

    def _entity_changed(self, entity_type: str, entity: str, values: Mapping[str, str]) -> None:
        try:
            self.on_entity_config[entity_type](entity, values)
        except ValueError as error:
            self._log("error", f"configuration of {entity_type}/{entity} is ignored: {error}")

    async def forget_all(self) -> None:
        """Remove the dynamic values of this broker and of the cluster, as if it started without.

        This skips the checks of a client's change, which would refuse large steps, such as from 32
        threads back to 8.
        """
        for entity in (str(self._broker_id), znode_paths.DEFAULT_ENTITY):
            if await self._zk.admin.get_entity_configs(znode_paths.BROKERS, entity):
                await self._zk.admin.set_or_create_entity_configs(znode_paths.BROKERS, entity, {})
                change = f"{znode_paths.BROKERS}/{entity}"
                await self._zk.admin.create_config_change_notification(change)
        self._default, self._own = {}, {}
        self._is_following = False
        self._apply()
        self._is_following = True

    def shutdown(self) -> None:
        """Stop following changes."""
        self.followed.stop()

    # --- applying

    async def _apply_change(self, data: bytes) -> None:
        """Read and apply the configuration of the entity that a notification names."""
        entity_type, _, entity = znode_payloads.decode_config_change(data).partition("/")
        values = await self._zk.admin.get_entity_configs(entity_type, entity)
        if entity_type == znode_paths.TOPICS:
            self._topic_changed(entity, values)
        elif entity_type == znode_paths.BROKERS:
            self._broker_changed(entity, values)
        elif entity_type in self.on_entity_config:
            self._entity_changed(entity_type, entity, values)

    def _topic_changed(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Apply a topic's overrides, and trigger an election if unclean election is now enabled."""
        try:
            self._topics[topic] = TopicConfig(self._config, overrides) if overrides else self._plain
        except ValueError as error:
            self._log("error", f"configuration of topic {topic} is ignored: {error}")
            return
        self._on_topic_config(topic)
        if self.on_topic_overrides is not None:
            try:
                self.on_topic_overrides(topic, overrides)
            except ValueError as error:
                self._log("error", f"throttles of topic {topic} are ignored: {error}")
                return
        is_unclean = overrides.get(_UNCLEAN, "").strip().lower() == "true"
        controller = self._controller
        elects = is_unclean and self._behaviour.unclean_topic_elects_at_once
        if elects and controller.is_active:
            controller.put(TopicUncleanLeaderElectionEnable(topic))

    def _broker_changed(self, broker: str, values: Mapping[str, str]) -> None:
        if broker == znode_paths.DEFAULT_ENTITY:
            self._default = dict(values)
        elif broker == str(self._broker_id):
            self._own = dict(values)
        else:
            return
        self._apply()

    def _apply(self) -> None:
        """Apply the broker's values as known now, and report a change to the callback and, if
        unclean election was turned on, to the controller."""
        was_unclean = self._config[_UNCLEAN]
        if not self._apply_broker_config():
            return
        if self.on_broker_config is not None:
            self.on_broker_config()
        is_new = self._config[_UNCLEAN] and not was_unclean
        if is_new and self._behaviour.unclean_default_elects_at_once:
            self._controller.put(UncleanLeaderElectionEnable())

    def _can_apply(self, wanted: tuple[Mapping[str, str], Mapping[str, str]]) -> bool:
        """Return whether the broker can apply the stored values.

        The broker that served the client's request has checked the change, but this one may have
        other values, and a direct write to ZooKeeper is not checked at all. While the broker
        starts, only the values are checked, as no component has to be reconfigured yet.
        """
        config = self._config
        if wanted == config.applied:
            return True
        from .reconfiguration import check_reconfiguration, check_values, static_texts

        release = release_configs(config.kafka_version)
        static = {**static_texts(config), **self.facts()}
        try:
            if self._is_following:
                check_reconfiguration(static, config.applied, wanted, release, self._behaviour)
            else:
                check_values(static, wanted, release, self._behaviour)
        except (ConfigException, KafkaError) as error:
            self._log("error", f"dynamic configuration is not applied: {error}")
            return False
        return True

    def _apply_broker_config(self) -> bool:
        """Apply the broker's own values over the cluster's default; returns whether any changed.

        Values that the broker cannot apply are still remembered, and take part in later changes
        and their checks (``DynamicBrokerConfig.updateDefaultConfig``).
        """
        config, behaviour = self._config, self._behaviour
        version = config.kafka_version
        own: dict[str, str] = {}
        default: dict[str, str] = {}
        if self._own or self._default:
            from .reconfiguration import usable  # most brokers have no dynamic values

            own, ignored = usable(self._own, version, behaviour, per_broker=True)
            default, ignored_default = usable(self._default, version, behaviour, per_broker=False)
            for text in (*ignored, *ignored_default):
                self._log("error", text)
        config.dynamic_of_broker, config.dynamic_default = own, default
        if not self._can_apply((default, own)):
            return False
        config.applied = (default, own)
        if default and not behaviour.default_throttle_rates:
            rates = release_configs(version).dynamic
            default = {name: value for name, value in default.items() if name not in rates}
        known = definitions(version)
        effective: dict[str, str] = {}
        for name, value in {**default, **own}.items():
            if name not in known:
                continue  # stored and described, but without effect here
            try:
                known[name].parse(value)
            except ValueError as error:
                self._log("error", f"dynamic configuration {name}={value} is ignored: {error!r}")
            else:
                effective[name] = value
        before = dict(config.dynamic)
        config.set_dynamic(effective)
        if before == config.dynamic:
            return False
        old, self._plain = self._plain, TopicConfig(config)
        for topic, topic_config in self._topics.items():
            if topic_config is old:
                self._topics[topic] = self._plain
        return True
