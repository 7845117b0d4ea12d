"""Temporary."""
from ..protocol.config import TopicConfig
class DynamicConfigManager:
    def __init__(self, *, broker_id, host, config, behaviour, zk, controller, on_topic_config):
        self.__dict__.update(locals()); self.overrides={}
    def topic_config(self, topic):
        return TopicConfig(self.config, self.overrides.get(topic))
    async def load(self): pass
    async def startup(self): pass
